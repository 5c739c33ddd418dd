package demo_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/internal/testhost"
)

// The demo tells its story to the end, and what it prints on standard output is the program's.
func TestDemo(t *testing.T) {
	testhost.Require(t)
	realengine.Require(t)
	cmd := exec.Command("./demo.sh")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	for _, want := range []string{
		"verdict: pass: 0 faults in 300 requests",
		"restart pending",
		"1bit-demo.service runs hrx-7871c71: it answers as it should",
		"1bit-demo.service went back to hrx-7871c71",
		"hrx-0bad1ed is blocked: serves null log-probabilities (NaN)",
		"1bit-demo.service runs hrx-3092596: it answers as it should",
		"hrx-3092596 is as it was made",
		"the GPU is ours",
		"gpu.lock is free",
		"1bit-demo.service: ended by SIGSEGV, hrx-3092596",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", stdout.String(), stderr.String())
	}
	if !strings.Contains(stderr.String(), "1bit: restart 1bit-demo.service: hrx-0bad1ed failed") {
		t.Errorf("no reason for the return on standard error:\n%s", stderr.String())
	}
}
