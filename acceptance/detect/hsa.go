package detect

import "github.com/1bit-systems/pkg/engine"

func hsa() face {
	return face{
		FaceInfo: FaceInfo{Name: HSA, Default: Gate, Gates: true, Unit: UnitArm, Needs: NeedsLog,
			About: "the GPU's runtime reports an error, other than an allocation that failed"},
		find: []detector{on(func(ev engine.LogEvent) []Finding {
			if ev.Kind != engine.LogDevice {
				return nil
			}
			return one(Fault, quote([]byte(ev.Detail)), "%s", quote([]byte(ev.Detail)))
		})},
	}
}
