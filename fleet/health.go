package fleet

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// quickAnswer bounds each question that status asks a server.
const quickAnswer = time.Second

// health says how a unit's server is, with short questions only.
func (h *Host) health(ctx context.Context, u *systemd.Unit, procs []procInfo) string {
	switch {
	case u.ActiveState == "failed" || restarting(u):
		return HealthFailing
	case u.ActiveState == "inactive" || u.ActiveState == "deactivating" || len(procs) == 0:
		return HealthUnknown
	}
	c, state, err := h.ask(ctx, procs)
	switch {
	case err == nil && state == engine.HealthOK:
		if h.busy(ctx, c) {
			return HealthBusy
		}
		return HealthOK
	case err == nil:
		return HealthLoading
	case errors.Is(err, errNotListening):
		// A server listens early, but its front end may come first.
		if age := h.Now().Sub(u.MainStarted); age >= 0 && age < h.loadDeadline() {
			return HealthLoading
		}
		return HealthFailing
	case errors.Is(err, context.DeadlineExceeded):
		return HealthBusy // it took the question and is not done with it
	case errors.Is(err, os.ErrPermission):
		return HealthUnknown // another user's sockets
	}
	return HealthFailing
}

// errNotListening says that no process of the unit listens.
var errNotListening = errors.New("no process of the unit listens")

// ask finds the unit's server among the sockets that its own processes listen on and asks /health, so that an
// answer of anybody else can never count.
func (h *Host) ask(ctx context.Context, procs []procInfo) (*engine.Client, engine.HealthState, error) {
	pids := make([]int, len(procs))
	for i, p := range procs {
		pids[i] = p.pid
	}
	addresses, err := systemd.Listeners(h.proc(), pids)
	if err != nil {
		return nil, "", err
	}
	err = errNotListening
	key := apiKey(procs)
	var loading *engine.Client
	for _, address := range addresses {
		c := newClient(address, key)
		quick, cancel := context.WithTimeout(ctx, quickAnswer)
		state, aerr := c.Health(quick)
		cancel()
		switch {
		case aerr == nil && state == engine.HealthOK:
			return c, state, nil
		case aerr == nil && loading == nil:
			loading = c // another of its ports may be ready
		case aerr != nil:
			err = aerr
		}
	}
	if loading != nil {
		return loading, engine.HealthLoading, nil
	}
	return nil, "", err
}

// busy tells whether a slot of the server works.
func (h *Host) busy(ctx context.Context, c *engine.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, quickAnswer)
	defer cancel()
	slots, err := c.Slots(ctx)
	if err != nil {
		return errors.Is(err, context.DeadlineExceeded)
	}
	for _, s := range slots {
		if s.Processing {
			return true
		}
	}
	return false
}

// newClient speaks to a listening address; one of all interfaces is reached over the loopback.
func newClient(address netip.AddrPort, key string) *engine.Client {
	ip := address.Addr()
	if ip.IsUnspecified() {
		if ip.Is4() {
			ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		} else {
			ip = netip.IPv6Loopback()
		}
	}
	return &engine.Client{BaseURL: "http://" + netip.AddrPortFrom(ip, address.Port()).String(), Key: key}
}

// apiKey finds the key that llama-server asks of its clients in how it was started, "" for none.
func apiKey(procs []procInfo) string {
	for _, p := range procs {
		for i, arg := range p.argv {
			name, value, joined := strings.Cut(arg, "=")
			if !joined && i+1 < len(p.argv) {
				value = p.argv[i+1]
			}
			switch name {
			case "--api-key":
				value, _, _ = strings.Cut(value, ",")
				return value
			case "--api-key-file":
				data, err := os.ReadFile(value)
				if err == nil {
					line, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
					return strings.TrimSpace(line)
				}
			}
		}
		if value, ok := lookup(p.env, "LLAMA_API_KEY"); ok {
			value, _, _ = strings.Cut(value, ",")
			return value
		}
	}
	return ""
}
