package engine

import "strings"

// Placement is where a model came to lie, as far as the log says.
type Placement struct {
	Offloaded, Layers int
	Devices           []string // the model was put on
	Missing           []string // backends that could not be loaded, with the reason
	NoGPU             bool     // the argument parser saw no GPU
}

// Add takes one event; most say nothing about it.
func (p *Placement) Add(ev LogEvent) {
	const most = 64 // of devices and of missing backends
	switch {
	case ev.Kind == LogOffload:
		p.Offloaded, p.Layers = ev.Offloaded, ev.Layers
	case ev.Kind == LogUsing && len(p.Devices) < most:
		p.Devices = append(p.Devices, strings.Clone(ev.Device))
	case ev.Kind == LogMissing && len(p.Missing) < most:
		p.Missing = append(p.Missing, strings.Clone(ev.Detail))
	case ev.Kind == LogNoGPU:
		p.NoGPU = true
	}
}
