package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestCI(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "none"},
		{"ci_repository: 1bit-systems/engine", ""},
		{"ci_repository: 1bit-systems/engine\nci_api: https://github.example.org/api/v3", ""},
		{"ci_repository: engine", "it is owner/name"},
		{"ci_repository: https://github.com/1bit-systems/engine", "it is owner/name"},
		{"ci_repository: 1bit-systems/engine\nci_api: github.example.org", "is no address of an API"},
	} {
		a := policyApp(t, test.text, "")
		own := a.getenv
		a.getenv = func(name string) string {
			if name == "GH_TOKEN" {
				return "ghp_0123456789"
			}
			return own(name)
		}
		c, err := a.loadConfig(pflag.NewFlagSet("", pflag.ContinueOnError))
		a.config = c
		switch ci := a.ci(); {
		case test.want == "none":
			if err != nil || ci != nil {
				t.Errorf("%q: %v %v", test.text, ci, err)
			}
		case test.want == "":
			if err != nil || ci == nil || ci.Repository != "1bit-systems/engine" || ci.Token != "ghp_0123456789" || ci.API != c.CIAPI {
				t.Errorf("%q: %+v %v", test.text, ci, err)
			}
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%q: %v", test.text, err)
		}
	}
}
