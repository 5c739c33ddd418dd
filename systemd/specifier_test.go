package systemd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecifiersExpand(t *testing.T) {
	unit := Specifiers{'h': "/home/ai"}.forUnit(`a-b@x\x2dy-z.service`, "/etc/systemd/user/a-b@.service")
	tests := []struct {
		text, want string
		ok, unsure bool
	}{
		{"plain", "plain", true, false},
		{"%h/x", "/home/ai/x", true, false},
		{"%%h 100%", "%h 100%", true, false},
		{"%n %N %p %i %j", `a-b@x\x2dy-z.service a-b@x\x2dy-z a-b x\x2dy-z b`, true, false},
		{"%P %I %J %f", "a/b x-y/z b /x-y/z", true, false},
		{"%y %Y", "/etc/systemd/user/a-b@.service /etc/systemd/user", true, false},
		{"%_ % %\xc3", "%_ % %\xc3", true, false},
		{"%t/x", "%t/x", true, true},
		{"%k", "%k", true, true},
		{"%4", "", false, false},
		{"a%40b", "", false, false},
	}
	for _, test := range tests {
		got, unsure, ok := unit.expand(test.text)
		if got != test.want || ok != test.ok || (unsure != "") != test.unsure {
			t.Errorf("%q: %q, %q, %v", test.text, got, unsure, ok)
		}
	}
	for _, bad := range []string{`a@x\y.service`, `a@x\x4.service`, `a@x\xgg.service`} {
		if got, _, ok := (Specifiers{}).forUnit(bad, "").expand("%I"); ok {
			t.Errorf("%s: %%I is %q", bad, got)
		}
	}
	for _, bad := range []string{"a@-x.service", "a@x-.service", "a@x--y.service", "a@..-x.service"} {
		if got, _, ok := (Specifiers{}).forUnit(bad, "").expand("%f"); ok {
			t.Errorf("%s: %%f is %q", bad, got)
		}
	}
	if got, _, _ := (Specifiers{}).forUnit("a@-.service", "").expand("%f"); got != "/" {
		t.Errorf("the root is %q", got)
	}
}

func TestUserSpecifiers(t *testing.T) {
	plain := map[string]string{"HOME": "/home/ai", "USER": "ai", "XDG_RUNTIME_DIR": "/run/user/1000"}
	moved := map[string]string{"HOME": "/home/ai", "XDG_CONFIG_HOME": "/c", "XDG_CACHE_HOME": "/k", "XDG_STATE_HOME": "/s"}
	tests := []struct {
		name        string
		version     int
		environment map[string]string
		want        Specifiers
	}{
		{"252", 252, plain, Specifiers{'U': "1000", 'u': "ai", 'h': "/home/ai", 't': "/run/user/1000", 'E': "/home/ai/.config",
			'C': "/home/ai/.cache", 'S': "/home/ai/.config", 'L': "/home/ai/.config/log"}},
		{"254", 254, plain, Specifiers{'U': "1000", 'u': "ai", 'h': "/home/ai", 't': "/run/user/1000", 'E': "/home/ai/.config",
			'C': "/home/ai/.cache", 'S': "/home/ai/.local/state", 'L': "/home/ai/.local/state/log"}},
		{"moved", 257, moved, Specifiers{'U': "1000", 'h': "/home/ai", 'E': "/c", 'C': "/k", 'S': "/s", 'L': "/s/log"}},
		{"nothing known", 0, nil, Specifiers{'U': "1000"}},
		{"relative", 252, map[string]string{"HOME": "x", "XDG_CONFIG_HOME": "y"}, Specifiers{'U': "1000"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, userSpecifiers(1000, test.version, test.environment)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestMajorVersion(t *testing.T) {
	for text, want := range map[string]int{"252.39-1~deb12u2": 252, "v257": 257, "254~rc1": 254, "": 0, "x": 0} {
		if got := majorVersion(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
