package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
)

func TestRequirements(t *testing.T) {
	sys := t.TempDir()
	dir := filepath.Join(sys, "module", "amdgpu", "parameters")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cwsr_enable"), []byte("0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := &Host{Sys: sys}
	for _, tt := range []struct {
		r    packager.Requirement
		want string
	}{
		{packager.Requirement{Kind: "path", Name: sys}, ""},
		{packager.Requirement{Kind: "path", Name: sys + "/none"}, "is not there"},
		{packager.Requirement{Kind: "device", Name: "/dev/null"}, ""},
		{packager.Requirement{Kind: "device", Name: sys}, "is not a device"},
		{packager.Requirement{Kind: "kernel_parameter", Name: "amdgpu.cwsr_enable", Value: "0"}, ""},
		{packager.Requirement{Kind: "kernel_parameter", Name: "amdgpu.cwsr_enable", Value: "1"}, "is 0, not 1"},
		{packager.Requirement{Kind: "kernel_parameter", Name: "amdgpu.none", Value: "1"}, "cannot be checked"},
		{packager.Requirement{Kind: "moon", Name: "full"}, "not known"},
	} {
		got := strings.Join(h.Missing(&packager.Manifest{Requires: []packager.Requirement{tt.r}}), "\n")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.want)
		}
	}
}
