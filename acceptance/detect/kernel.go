package detect

import "github.com/1bit-systems/pkg/engine/gpu"

func kernel() face {
	return face{
		FaceInfo: FaceInfo{Name: Kernel, Default: Gate, Gates: true, Unit: UnitArm, Needs: NeedsKernelLog,
			About: "the kernel reports a fault of a GPU, of the server or of a device that it uses"},
		find: []detector{on(func(ev KernelEvent) []Finding {
			text := quote([]byte(ev.Text))
			switch {
			case ev.Kind == gpu.KindEvict || ev.Kind == gpu.KindMemory:
				return nil // what a busy GPU does: it is counted as exposure
			case ev.Ours == "":
				return one(Warning, text, "%s of somebody else's %s: %s", ev.Kind, ev.Process, text)
			case !ev.Fault:
				return one(Warning, text, "%s, told of our %s, no fault by itself: %s", ev.Kind, ev.Ours, text)
			}
			return one(Fault, text, "%s, told of our %s: %s", ev.Kind, ev.Ours, text)
		})},
	}
}
