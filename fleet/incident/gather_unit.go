package incident

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/secret"
	"github.com/1bit-systems/pkg/systemd"
)

// Bounds of the unit's files: systemd itself reads files of any size.
const (
	maxUnitFile  = 256 << 10
	maxUnitFiles = 200
)

// unit asks the manager for the unit and reads its files.
func (g *gatherer) unit(ctx context.Context) {
	found, err := g.o.Host.Inspect(ctx, g.e.Unit)
	switch {
	case err != nil:
		g.unknown = err
		g.miss("the unit: %v", err)
	case len(found) == 0:
		g.miss("the unit: the manager tells nothing of it")
	default:
		g.service = &found[0]
		g.e.Unit = found[0].Unit
	}
	if g.service == nil || g.service.Loaded == nil {
		return
	}
	u := g.service.Loaded
	g.e.State = stateOf(u)
	g.command(u)
	paths := append([]string{u.FragmentPath}, u.DropInPaths...)
	for i, path := range paths {
		if path == "" {
			continue
		}
		if i >= maxUnitFiles {
			g.miss("files of the unit: it has %d, and the first %d are kept", len(paths), maxUnitFiles)
			break
		}
		file, err := readUnitFile(path)
		if err != nil {
			g.miss("file of the unit: %v", err)
			continue
		}
		g.e.Files = append(g.e.Files, file)
	}
}

func readUnitFile(path string) (UnitFile, error) {
	f, info, err := systemd.OpenRegular(path)
	if err != nil {
		return UnitFile{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxUnitFile))
	if err != nil {
		return UnitFile{}, fmt.Errorf("read %s: %w", path, err)
	}
	text := string(b)
	if info.Size() > maxUnitFile {
		text += "\n# (the rest of this file was left out)\n"
	}
	return UnitFile{Path: path, Text: text, Ours: filepath.Base(path) == "zz-1bit.conf"}, nil
}

func stateOf(u *systemd.Unit) UnitState {
	return UnitState{
		Load: u.LoadState, Active: u.ActiveState, Sub: u.SubState, Result: u.Result, Type: u.Type, Restart: u.Restart,
		Restarts: u.NRestarts, Invocation: u.InvocationID, MainPID: u.MainPID, MainStarted: moment(u.MainStarted),
		MainExited: moment(u.MainExited), MainCode: u.ExecMainCode, MainStatus: u.ExecMainStatus, MemoryMax: u.MemoryMax,
		MemoryPeak: u.MemoryPeak, ControlGroup: u.ControlGroup,
	}
}

// moment is a time, null for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// command is what the next start runs, and the variables that it gets from the unit's files. What looks like a secret is
// remembered, so that it can be hidden wherever it stands.
func (g *gatherer) command(u *systemd.Unit) {
	argv := []string{}
	if s := g.service.Settings; s != nil {
		for i, c := range s.Start() {
			if i > 0 {
				argv = append(argv, ";") // only a oneshot has several
			}
			words, _ := s.Argv(c, nil)
			argv = append(argv, words...)
		}
		all := s.Environment()
		for _, key := range slices.Sorted(maps.Keys(all)) {
			g.secrets.Add(key, all[key].Value)
			g.e.Settings = append(g.e.Settings, UnitSetting{Key: key, Value: secret.Value(key, all[key].Value), File: all[key].File, Line: all[key].Line})
		}
	} else {
		for _, assignment := range u.Environment {
			key, value, _ := strings.Cut(assignment, "=")
			g.secrets.Add(key, value)
			g.e.Settings = append(g.e.Settings, UnitSetting{Key: key, Value: secret.Value(key, value)})
		}
	}
	if len(argv) == 0 {
		for _, c := range u.ExecStart {
			argv = append(argv, c.Argv...)
		}
	}
	g.secrets.AddWords(argv)
	g.e.Command = secret.Words(argv)
}
