package cmd

import (
	"fmt"
	"testing"

	"github.com/spf13/pflag"

	"github.com/1bit-systems/pkg/packager"
)

func TestLimitFlags(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "7B": 7, "3KiB": 3 << 10, "144MiB": 144 << 20, "64GiB": 64 << 30, "2TiB": 2 << 40,
		"": 0, "0": 0, "-1": 0, "GiB": 0, "64gib": 0, "64 GiB": 0, "64G": 0, "1.5GiB": 0, "9000000TiB": 0, "iB": 0, "1iB": 0,
	} {
		var l limitFlags
		f := pflag.NewFlagSet("install", pflag.ContinueOnError)
		l.addFlags(f)
		err := f.Parse([]string{"--max-bytes=" + text})
		if l.Bytes != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %d, %v; want %d", text, l.Bytes, err, want)
		}
	}
	var l limitFlags
	f := pflag.NewFlagSet("install", pflag.ContinueOnError)
	l.addFlags(f)
	if err := f.Parse([]string{"--max-files", "7", "--max-bytes", "8", "--max-ratio", "9", "--max-path", "10", "--max-window", "11"}); err != nil {
		t.Fatal(err)
	}
	if want := (packager.Limits{Files: 7, Bytes: 8, Ratio: 9, Path: 10, Window: 11}); l.Limits != want {
		t.Errorf("got %+v", l.Limits)
	}
	for _, text := range []string{"0", "-1", "x", "99999999999"} {
		if err := f.Parse([]string{"--max-files", text}); err == nil {
			t.Errorf("--max-files %s is taken", text)
		}
	}
}

// TestLimitHint takes the hint by its word: what it says is enough.
func TestLimitHint(t *testing.T) {
	for _, need := range []int64{1, 1023, 1025, 16<<10 + 1, 144 << 20, 144<<20 + 1, 3 << 30, 33<<30 + 5, 1 << 40} {
		err := fmt.Errorf("install x: %w", &packager.LimitError{Limit: packager.LimitBytes, Need: need})
		var flag string
		var value sizeValue
		if _, serr := fmt.Sscanf(limitHint(err), "if you trust it, raise the limit: 1bit pkg install %s", &flag); serr != nil || flag != "--max-bytes" {
			t.Fatalf("hint %q", limitHint(err))
		}
		if serr := value.Set(sizeText(need)); serr != nil || int64(value) < need || int64(value) > need+need/16+1 {
			t.Errorf("%d is said as %s: %v", need, sizeText(need), serr)
		}
	}
	if hint := limitHint(packager.ErrIntegrity); hint != "" {
		t.Errorf("hint %q", hint)
	}
}
