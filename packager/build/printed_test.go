package build

import (
	"errors"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"github.com/google/go-cmp/cmp"
)

func TestPrintedCommits(t *testing.T) {
	for text, want := range map[string][]string{
		"version: 10605 (86c33b5d5)":                                    {"86c33b5d5"},
		"version: 10605 (86c33b5d5)\nbuilt with clang 20 (abcdef123) x": {"86c33b5d5"},
		"version: 0.7.0 (build 11669, commit Debian)":                   nil,
		"version: 0.7.0 (build 11669, commit 1234567)":                  {"1234567"},
		"version: 0.7.0 (10605)":                                        nil,
		"version: 0.7.0 (12345678)":                                     nil,
		"1bit front end, llama-server 10605 (86c33b5d5)":                {"86c33b5d5"},
		"1bit 1 (86c33b5d5-dirty), llama-server 2 (00adc2b)":            {"86c33b5d5", "00adc2b"},
		"x (86c33b5d5-17)":                                              nil,
		"x (86c33b)":                                                    nil,
		"x (86C33B5D5)":                                                 nil,
		"x (see 86c33b5d5)":                                             nil,
		"Commit: 00adc2bX":                                              nil,
		"recommit 00adc2b":                                              nil,
		"commit: 00adc2b" + strings.Repeat("0", 33):                     {"00adc2b" + strings.Repeat("0", 33)},
		"1bit v2026.44-5-g0123abc":                                      {"0123abc"},
		"1bit v2026.44-5-g1234567-dirty":                                {"1234567"},
		"1bit 2026.44.0+0123abcde":                                      {"0123abcde"},
		"1bit 2026.44.0+0123abcde.dirty":                                {"0123abcde"},
		"1bit 2026.44.0+20261130":                                       nil,
		"1bit 2026.44.0+rocm7":                                          nil,
		"1bit 2026.44.0+0123ab":                                         nil,
		"1bit 2026.44.0+0123abcz":                                       nil,
		"1bit git 0123abcde":                                            {"0123abcde"},
		"1bit (git: 0123abcde)":                                         {"0123abcde"},
		"1bit git 2.47.3":                                               nil,
		"1bit rev 0123abcde, Revision=1234567a":                         {"0123abcde", "1234567a"},
		"1bit revision 20261130":                                        nil,
		"1bit prev 0123abcde":                                           nil,
		"1bit (0123abcde, clean), x (1234abcde, dirty)":                 {"0123abcde", "1234abcde"},
		"1bit (0123abcde, gcc)":                                         nil,
		"1bit 0123abcde":                                                nil,
		"1bit model-5-g":                                                nil,
		"":                                                              nil,
	} {
		if diff := cmp.Diff(want, printedCommits(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestComparePins(t *testing.T) {
	m := &packager.Manifest{Components: []packager.Component{
		{Name: "engine", Commit: "3092596c1a"}, {Name: "llama.cpp", Commit: "86c33b5d5" + strings.Repeat("0", 31)},
	}}
	for name, printed := range map[string]map[string]string{
		"nothing":      {},
		"short":        {"llama-server": "version: 10605 (86c33b5d5)"},
		"longer":       {"1bit": "1bit (3092596c1a77)"},
		"both":         {"1bit": "1bit (3092596), llama-server 10605 (86c33b5d5-dirty)"},
		"none printed": {"1bit": "1bit 0.7", "llama-server": "version: 0.7.0 (build 11669, commit Debian)"},
	} {
		if err := comparePins(m, printed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := comparePins(m, map[string]string{"1bit": "1bit (3092596)", "llama-bench": "version: 10605 (00adc2b)"})
	if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "llama-bench says that it is of commit 00adc2b, and the pins are engine 3092596c1a, llama.cpp 86c33b5d5") {
		t.Errorf("another commit: %v", err)
	}
}

func FuzzPrintedCommits(f *testing.F) {
	f.Add("version: 10605 (86c33b5d5)")
	f.Add("1bit v2026.44-5-g0123abc 1+0123abc git 0123abc (0123abc, clean)")
	f.Add("version: 0.7.0 (build 11669, commit Debian)\nbuilt with (abcdef1)")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range printedCommits(text) {
			// What is found could be a component's commit, and agrees with itself.
			m := &packager.Manifest{Components: []packager.Component{{Name: "x", Commit: c}}}
			if err := packager.CheckComponent(m.Components[0]); err != nil || !strings.Contains(text, c) {
				t.Errorf("found %q in %q: %v", c, text, err)
			}
			if err := comparePins(m, map[string]string{"x": "(" + c + ")"}); err != nil {
				t.Error(err)
			}
		}
	})
}
