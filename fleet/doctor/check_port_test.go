package doctor

import (
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

func TestSharedPort(t *testing.T) {
	parse := func(unit, text string) service {
		f, err := systemd.ParseFile("/etc/"+unit, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := service{Inspection: fleet.Inspection{
			Loaded:   &systemd.Unit{ID: unit, LoadState: "loaded", ActiveState: "active", WantedBy: []string{"default.target"}},
			Settings: systemd.Effective([]*systemd.File{f}, nil, nil),
		}}
		s.Unit, s.Scope = unit, systemd.ScopeUser
		return s
	}
	const first = "[Service]\nExecStart=/usr/bin/1bit serve --port 8095\n"
	for _, tt := range []struct {
		name, first, second, want string
		alter                     func(s *service)
	}{
		{name: "the same", second: first, want: "8095"},
		{name: "in a shell's command", second: "[Service]\nExecStart=/bin/sh -c 'exec llama-server --port=8095 -m x'\n", want: "8095"},
		{name: "by a variable", second: "[Service]\nEnvironment=PORT=8095\nExecStart=/usr/bin/1bit serve --port ${PORT}\n", want: "8095"},
		{name: "by llama-server's own variable", second: "[Service]\nEnvironment=LLAMA_ARG_PORT=8095\nExecStart=/usr/bin/1bit serve\n", want: "8095"},
		{name: "everywhere", second: "[Service]\nExecStart=/usr/bin/1bit serve --port 8095 --host 0.0.0.0\n", want: "8095"},
		{name: "another address", second: "[Service]\nExecStart=/usr/bin/1bit serve --port 8095 --host 192.0.2.7\n"},
		{name: "another port", second: "[Service]\nExecStart=/usr/bin/1bit serve --port 8096\n"},
		{name: "any port", first: "[Service]\nExecStart=/usr/bin/1bit serve --port 0\n", second: "[Service]\nExecStart=/usr/bin/1bit serve --port 0\n"},
		{name: "no port", first: "[Service]\nExecStart=/usr/bin/1bit serve\n", second: "[Service]\nExecStart=/usr/bin/1bit serve --port\n"},
		{name: "the server's own", first: "[Service]\nExecStart=/usr/bin/llama-server -m x\n", second: "[Service]\nEnvironment=S=/p/llama-server\nExecStart=/usr/bin/env ${S} -m y --port 08080\n", want: "8080"},
		{name: "the server's own, of one told by what cannot be read", first: "[Service]\nExecStart=/usr/bin/llama-server -m x\n", second: "[Service]\nExecStart=/usr/bin/llama-server $ARGS\n"},
		{name: "the server's own, of one that has none", first: "[Service]\nExecStart=/usr/bin/llama-server --port\n", second: "[Service]\nExecStart=/usr/bin/llama-server\n"},
		{name: "the server's own, below a front end", first: "[Service]\nExecStart=/usr/bin/1bit serve --server /p/llama-server\n", second: "[Service]\nExecStart=/usr/bin/llama-server\n"},
		{name: "a socket that is a file", first: "[Service]\nExecStart=/usr/bin/llama-server --host /run/a.sock\n", second: "[Service]\nExecStart=/usr/bin/llama-server --host /run/a.sock\n"},
		{name: "failed of it", second: first, want: "8095", alter: func(s *service) { s.Loaded.ActiveState, s.Loaded.WantedBy = "failed", nil }},
		{name: "one stops the other", second: "[Unit]\nConflicts=x.service a.service\n" + first},
		{name: "a network of its own", second: first + "PrivateNetwork=yes\n"},
		{name: "no network of its own", second: first + "PrivateNetwork=no\n", want: "8095"},
		{name: "stopped, and nothing starts it", second: first, alter: func(s *service) { s.Loaded.ActiveState, s.Loaded.WantedBy = "inactive", nil }},
		{name: "stopped, and the next boot starts it", second: first, want: "8095", alter: func(s *service) { s.Loaded.ActiveState = "inactive" }},
		{name: "gone", second: first, alter: func(s *service) { s.Loaded = nil }},
	} {
		if tt.first == "" {
			tt.first = first
		}
		a, b := parse("a.service", tt.first), parse("b.service", tt.second)
		if tt.alter != nil {
			tt.alter(&b)
		}
		if got := shared(b, a); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if got := shared(a, b); got != tt.want {
			t.Errorf("%s, the other way: %q, want %q", tt.name, got, tt.want)
		}
	}
}
