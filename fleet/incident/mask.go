package incident

import (
	"encoding/json"
	"strings"

	"github.com/1bit-systems/pkg/internal/secret"
	"github.com/1bit-systems/pkg/systemd"
)

// mask hides the secrets in all that was gathered and that others wrote.
func (g *gatherer) mask() {
	e, hide := g.e, g.secrets.Text
	for i := range e.Files {
		f := &e.Files[i]
		before := strings.Count(f.Text, secret.Mask)
		f.Text = hide(f.Text)
		f.Masked += strings.Count(f.Text, secret.Mask) - before
	}
	for i := range e.Command {
		e.Command[i] = hide(e.Command[i])
	}
	for i := range e.Settings {
		e.Settings[i].Value = hide(e.Settings[i].Value)
	}
	for _, entries := range []*[]string{&e.Missing, &e.Gaps} {
		for i := range *entries {
			(*entries)[i] = hide((*entries)[i])
		}
	}
	maskEntries(e.Entries, hide)
	maskEntries(e.Kernels, hide)
	for i := range e.Kernel {
		e.Kernel[i].Text, e.Kernel[i].Process = hide(e.Kernel[i].Text), hide(e.Kernel[i].Process)
	}
	for i := range e.OOM {
		e.OOM[i].Text, e.OOM[i].Process = hide(e.OOM[i].Text), hide(e.OOM[i].Process)
	}
	for i := range e.Processes {
		e.Processes[i].Command = hide(e.Processes[i].Command)
	}
	for i := range e.Claims {
		e.Claims[i].Command, e.Claims[i].Label = hide(e.Claims[i].Command), hide(e.Claims[i].Label)
	}
	for i := range e.Runs {
		e.Runs[i].Title, e.Runs[i].Name = hide(e.Runs[i].Title), hide(e.Runs[i].Name)
	}
	var actions []json.RawMessage
	for _, raw := range e.Actions {
		if text := hide(string(raw)); json.Valid([]byte(text)) {
			actions = append(actions, json.RawMessage(text))
		}
	}
	e.Actions = actions
	e.HostNow.Command = hide(e.HostNow.Command)
}

// maskEntries hides the secrets in a log. A private key comes in as many entries as it has lines, from one process.
func maskEntries(entries []systemd.Entry, hide func(string) string) {
	type writer struct {
		boot, unit string
		pid        int
	}
	keys := map[writer]*secret.KeyLines{}
	for i := range entries {
		e := &entries[i]
		from := writer{e.Boot, e.Unit, e.PID}
		if keys[from] == nil {
			keys[from] = &secret.KeyLines{}
		}
		e.Message = hide(keys[from].Text(e.Message))
		e.Identifier, e.Missing = hide(e.Identifier), hide(e.Missing)
		for name, value := range e.Fields {
			e.Fields[name] = hide(value)
		}
	}
}
