package incident

import (
	"encoding/json"
	"strings"

	"github.com/1bit-systems/pkg/internal/secret"
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
	for i := range e.Entries {
		e.Entries[i].Message = hide(e.Entries[i].Message)
		for name, value := range e.Entries[i].Fields {
			e.Entries[i].Fields[name] = hide(value)
		}
	}
	for i := range e.Kernels {
		e.Kernels[i].Message = hide(e.Kernels[i].Message)
	}
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
