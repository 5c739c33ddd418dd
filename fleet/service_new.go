package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// ErrName is wrapped where a new service cannot have the name that was asked for.
var ErrName = errors.New("not a name for a new service")

// NewService says what a new unit is to start.
type NewService struct {
	Name    string         // of the unit, with or without .service
	Package *store.Package // that it starts from
	Program string         // an entry point of the package: 1bit, llama-server, …
	Args    []string       // handed to the program as they are
	DryRun  bool           // only make the text
}

// MadeService is a unit that was made, or would be.
type MadeService struct {
	Unit    string        `json:"unit"`
	Scope   systemd.Scope `json:"scope"`
	Path    string        `json:"path"`
	Package string        `json:"package"`
	Text    string        `json:"text"`
	Next    []string      `json:"next"` // the commands that load, enable and start it
	Changed bool          `json:"changed"`
	DryRun  bool          `json:"dry_run"`
	Notes   []string      `json:"notes"`
}

// NewService writes a unit for those who have none: its program and libraries come from a package over variables, so
// that a switch can move it. It starts, enables and loads nothing. The error wraps [ErrName], [ErrRefused]
// where there is something of that name already, and [fs.ErrNotExist] where the package has no such program.
func (h *Host) NewService(ctx context.Context, n NewService) (*MadeService, error) {
	out, err := h.newService(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("make the service %s: %w", n.Name, err)
	}
	return out, nil
}

func (h *Host) newService(ctx context.Context, n NewService) (*MadeService, error) {
	unit, err := unitName(n.Name)
	if err != nil || strings.Contains(n.Name, "@") {
		return nil, fmt.Errorf("%w: %q: it has letters, digits and any of : - _ . and no @, which is for templates", ErrName, n.Name)
	}
	if err := ownFolder(unit); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrName, err)
	}
	notes, err := h.unused(ctx, unit)
	if err != nil {
		return nil, err
	}
	if err := h.verify(ctx, n.Package, false); err != nil {
		return nil, err
	}
	text, err := h.unitText(unit, n)
	if err != nil {
		return nil, err
	}
	out := &MadeService{
		Unit: unit, Scope: h.Scope, Path: filepath.Join(h.UnitDir, unit), Package: n.Package.Name, Text: text, DryRun: n.DryRun,
		Next: []string{"systemctl" + h.userFlag() + " daemon-reload", "systemctl" + h.userFlag() + " enable --now " + unit}, Notes: append([]string{}, notes...),
	}
	if h.Scope != systemd.ScopeSystem {
		if who := or(h.Owner, h.User); who != "" && absentPath(filepath.Join(h.below("var/lib/systemd/linger"), who)) {
			out.Next = append(out.Next, "loginctl enable-linger "+who)
			out.Notes = append(out.Notes, fmt.Sprintf("%s does not linger: without the last command the service ends with the last logout and does not start at boot", who))
		}
	}
	for _, problem := range h.Missing(n.Package.Manifest) {
		out.Notes = append(out.Notes, fmt.Sprintf("%s wants something of this host: %s", n.Package.Name, problem))
	}
	if n.DryRun {
		return out, nil
	}
	if err := atomicfile.MkdirAll(h.UnitDir, 0o755); err != nil {
		return nil, unwritable(h.UnitDir, err)
	}
	if err := writeNew(out.Path, []byte(text)); err != nil {
		return nil, unwritable(h.UnitDir, err)
	}
	out.Changed = true
	h.log().Info("made a service", "unit", unit, "package", n.Package.Name)
	return out, nil
}

// writeNew writes a file that must not be there yet.
func writeNew(path string, data []byte) error {
	temp := path + ".new"
	if err := atomicfile.Write(temp, data, 0o644); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// unused refuses a name that something has already: a unit, an alias, a mask, or drop-ins that would change it.
func (h *Host) unused(ctx context.Context, unit string) (notes []string, err error) {
	dirs := h.unitFolders(h.homes())
	m, err := h.Connect(ctx)
	switch {
	case err == nil:
		defer m.Close()
		dirs = append([]string{h.UnitDir}, m.SearchPath()...)
		u, err := m.Unit(ctx, unit)
		if err == nil {
			return nil, fmt.Errorf("%w: there is a unit of that name, in %s: choose another name, or take that one over with: 1bit pkg adopt %s",
				ErrRefused, or(u.FragmentPath, "no file"), u.ID)
		}
		if !errors.Is(err, systemd.ErrNoUnit) {
			return nil, err
		}
	case errors.Is(err, systemd.ErrNoBus):
		notes = []string{fmt.Sprintf("no manager was asked whether the name is free: %v", err)}
	default:
		return nil, err
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, unit); !absentPath(path) {
			return nil, fmt.Errorf("%w: %s is there already: choose another name", ErrRefused, path)
		}
		entries, err := os.ReadDir(filepath.Join(dir, unit+".d"))
		if err != nil && !absent(err) {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".conf") {
				return nil, fmt.Errorf("%w: %s is there already and would change the new unit: choose another name, or remove it first",
					ErrRefused, filepath.Join(dir, unit+".d", e.Name()))
			}
		}
	}
	return notes, nil
}

// unitText is the unit file.
func (h *Host) unitText(unit string, n NewService) (string, error) {
	values, program, err := newVariables(n)
	if err != nil {
		return "", err
	}
	start := []string{envProgram, "${" + program + "}"}
	for _, arg := range n.Args {
		if !utf8.ValidString(arg) || strings.ContainsRune(arg, 0) {
			return "", fmt.Errorf("%w: the argument %q is not UTF-8 text", ErrRefused, arg)
		}
		start = append(start, argument(arg))
	}
	flag, target := h.userFlag(), "default.target"
	after := ""
	if h.Scope == systemd.ScopeSystem {
		target, after = "multi-user.target", "Wants=network-online.target\nAfter=network-online.target\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Made by "1bit pkg service new". It is yours: edit it as you like, and keep the variables in ExecStart=.
# "1bit pkg switch %[1]s ID" moves it to another package by a drop-in, "1bit pkg rollback %[1]s" back.

[Unit]
Description=%[2]s of the 1bit inference engine
%[3]s# A service that fails ten times in ten minutes stays down until "systemctl%[4]s reset-failed %[1]s".
StartLimitIntervalSec=10min
StartLimitBurst=10

[Service]
# Started is what could be executed; the model may take as long to load as it needs.
Type=exec
# Programs and libraries come from one package and move together.
`, unit, n.Program, after, flag)
	for _, a := range values {
		quoted, err := systemd.QuoteAssignment(a.Key, a.Value)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrRefused, err)
		}
		fmt.Fprintf(&b, "Environment=%s\n", quoted)
	}
	fmt.Fprintf(&b, `ExecStart=%s
Restart=always
RestartSec=2s
TimeoutStartSec=90s
# What it is answering when it is told to stop may take a while.
TimeoutStopSec=60s

[Install]
WantedBy=%s
`, strings.Join(start, " "), target)
	return b.String(), nil
}

// newVariables are the variables of a new unit, and the one that names its program. The front end starts the server
// that its variable names, so that moves too.
func newVariables(n NewService) (values []Assignment, program string, err error) {
	path, err := n.Package.Program(n.Program)
	if err != nil {
		return nil, "", err
	}
	if strings.Contains(path, "=") {
		return nil, "", fmt.Errorf("%w: the path %s has a \"=\" in it, which %s takes for a variable", ErrRefused, path, envProgram)
	}
	if filepath.Base(path) == "llama-server" {
		return []Assignment{{serverVariable, path}}, serverVariable, nil
	}
	if server, err := n.Package.Program("llama-server"); err == nil {
		values = append(values, Assignment{serverVariable, server})
	}
	return append(values, Assignment{programVariable, path}), programVariable, nil
}

// argument writes one argument so that the program gets exactly that: a per cent sign and a dollar sign are doubled,
// and what is not plain is quoted.
func argument(arg string) string {
	plain := arg != "" && strings.IndexFunc(arg, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=,+@", r)
	}) < 0
	if plain {
		return arg
	}
	return systemd.QuoteWord(strings.ReplaceAll(arg, "$", "$$"))
}
