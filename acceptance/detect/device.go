package detect

import (
	"slices"
	"strings"
)

func device() face {
	return face{
		FaceInfo: FaceInfo{Name: Device, Default: Gate, Gates: true, Unit: UnitArm, Needs: NeedsPlacement,
			About: "the model runs on another device, or with fewer layers on it, than the plan wants"},
		find: []detector{on(func(p Placement) []Finding {
			grade := Fault
			if p.CountsAs == string(Invalid) {
				grade = Invalid
			}
			switch on := strings.Join(p.Devices, ", "); {
			case p.WantDevice != "" && on == "":
				return one(grade, "", "the log names no device, the plan wants %s", p.WantDevice)
			case p.WantDevice != "" && !slices.Contains(p.Devices, p.WantDevice):
				return one(grade, "", "the model is on %s, the plan wants %s", on, p.WantDevice)
			case p.WantLayers == "all" && p.Layers == 0:
				return one(grade, "", "the log names no offloaded layers, the plan wants all")
			case p.WantLayers == "all" && p.Offloaded < p.Layers:
				return one(grade, "", "%d of %d layers are on the device, the plan wants all", p.Offloaded, p.Layers)
			}
			return nil
		})},
	}
}
