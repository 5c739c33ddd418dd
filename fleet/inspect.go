package fleet

import (
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// Inspection is a service with what it was read from, for those who look closer than status does.
type Inspection struct {
	Service
	Loaded   *systemd.Unit
	Settings *systemd.Settings // of the files
	Package  *store.Package    // the armed one, nil where none is or it is not installed
	Findings []Finding         // those that Service.Warnings are made of
}
