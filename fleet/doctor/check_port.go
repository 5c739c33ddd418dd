package doctor

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// port looks for services that want the same port. One that is stopped and that nothing starts is no matter, and neither
// are two of which one stops the other.
func port() Check {
	return Check{
		Name:   "port",
		Reason: "The second of two services on one port does not come up, and at the next boot that may be the other one than today.",
		Remedy: "Give one of them another --port, with systemctl --user edit UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for i, s := range services {
				for _, other := range services[:i] {
					if at := shared(s, other); at != "" {
						add(s.where, s.typed("give one of them another --port, with: systemctl --user edit UNIT"), "it wants port %s, and so does %s", at, other.where)
					}
				}
			}
			return err
		},
	}
}

// shared is a port that two services want at the same time, "" where there is none.
func shared(a, b service) string {
	conflicts := func(a, b service) bool {
		return slices.ContainsFunc(a.Settings.Values("Unit", "Conflicts"), func(v systemd.Value) bool { return slices.Contains(strings.Fields(v.Value), b.Unit) })
	}
	for _, s := range []service{a, b} {
		tried := s.loaded() && s.Loaded.ActiveState == "failed" // somebody started it, and it may have failed of this
		if !s.meant() && !tried || yes(s.Settings.Last("Service", "PrivateNetwork").Value) {
			return ""
		}
	}
	if a.Scope == b.Scope && (conflicts(a, b) || conflicts(b, a)) {
		return ""
	}
	for _, x := range listens(a) {
		for _, y := range listens(b) {
			if x.port == y.port && (x.host == y.host || everywhere(x.host) || everywhere(y.host)) {
				return x.port
			}
		}
	}
	return ""
}

// yes is systemd's reading of a truth value.
func yes(v systemd.Value) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(v.Line.Value))
}

// listen is where a command says that a server listens.
type listen struct {
	host, port string
	shares     bool // with others of its kind
}

func everywhere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

// usualPort is where a server listens that nobody tells.
const usualPort = "8080"

// listens are the ports that the commands of a service name, and its environment; that of the engine's server by itself is
// known where its command is.
func listens(s service) []listen {
	environment := s.Settings.Environment()
	var out []listen
	for _, command := range s.Settings.Start() {
		argv, unsure := s.Settings.Argv(command, nil)
		text := strings.Join(argv, " ")
		words := strings.Fields(text) // also those of a shell's command
		one := listen{host: environment["LLAMA_ARG_HOST"].Value, port: environment["LLAMA_ARG_PORT"].Value}
		if g, ok := s.Given("LLAMA_ARG_PORT"); ok && g.Process == 0 {
			one.port = g.Value
		}
		if one.port == "" && unsure == "" && !strings.Contains(text, "$") && server(words) {
			one.port = usualPort
		}
		for i, word := range words {
			name, value, joined := strings.Cut(word, "=")
			if !joined && i+1 < len(words) {
				value = words[i+1]
			}
			switch name {
			case "--port":
				one.port = value
			case "--host":
				one.host = value
			case "--reuse-port":
				one.shares = true
			}
		}
		if one.host == "" || one.host == "localhost" {
			one.host = "127.0.0.1"
		}
		n, err := strconv.Atoi(one.port)
		if err == nil && n > 0 && !one.shares && !strings.HasSuffix(one.host, ".sock") { // which is no port
			out = append(out, listen{host: one.host, port: strconv.Itoa(n)})
		}
	}
	return out
}

// server tells whether a command starts the engine's server itself, not by a front end that has a port of its own.
func server(words []string) bool {
	i := slices.IndexFunc(words, func(word string) bool { return filepath.Base(word) == "llama-server" })
	for j := range i {
		if word := words[j]; filepath.Base(word) != "env" && filepath.Base(word) != "exec" && !strings.Contains(word, "=") && !slices.Contains([]string{"sh", "bash", "-c"}, filepath.Base(word)) {
			return false
		}
	}
	return i >= 0
}
