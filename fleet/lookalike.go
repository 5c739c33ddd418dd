package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// Lookalike is a unit that looks like an engine and runs no package. Its JSON keys are a promise.
type Lookalike struct {
	Unit    string        `json:"unit"`
	Scope   systemd.Scope `json:"scope"`
	User    string        `json:"user"` // as in Service
	Program string        `json:"program"`
	Why     string        `json:"why"`
	Hint    string        `json:"hint"` // what to do to have it run a package
}

// lookalike tells why a unit that is none of ours looks like an engine; nil where it does not.
func (h *Host) lookalike(v *view, procs []procInfo) *Lookalike {
	program, why := engineCommand(v.loaded.ExecStart)
	if program == "" {
		if value, ok := v.environment()[serverVariable]; ok {
			program, why = value, fmt.Sprintf("%s=%s is in its environment", serverVariable, value)
		}
	}
	for _, p := range procs {
		if program != "" {
			break
		}
		if name, ok := engineProcess(p); ok {
			program, why = name, fmt.Sprintf("its process %d is %s", p.pid, name)
		}
	}
	if program == "" {
		return nil
	}
	if value := v.environment()[serverVariable]; value != "" && filepath.IsAbs(value) {
		program = value // what the front end starts
	}
	return &Lookalike{
		Unit: v.loaded.ID, Scope: h.Scope, User: h.Owner, Program: program, Why: why, Hint: h.hint(v.loaded.ID, program, v.place),
	}
}

// engineCommand finds an engine's program, or its front end, in what a unit starts, also in a shell's command.
func engineCommand(commands []systemd.Command) (program, why string) {
	for _, command := range commands {
		var words []string
		for _, arg := range append([]string{command.Path}, command.Argv...) {
			words = append(words, strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(endsPath, r) })...)
		}
		for i, word := range words {
			front := filepath.Base(word) == "1bit" && slices.Contains(words[i+1:], "serve")
			if (front || engineProgram(word)) && started(words[:i]) {
				return word, fmt.Sprintf("ExecStart= starts %s", word)
			}
		}
	}
	return "", ""
}

// starters are the programs that start what their arguments name, as far as engines are started by them.
var starters = []string{"sh", "bash", "dash", "env", "exec", "nice", "ionice", "chrt", "taskset", "numactl", "stdbuf", "setsid", "timeout",
	"unshare", "systemd-run", "sudo", "runuser", "gdb", "strace"}

// started tells whether the word behind others of a command is a program that it starts, and not what a program such as
// pgrep or tail is to look at: the first word of a command, of a shell's command, or of a starter's.
func started(before []string) bool {
	if len(before) == 0 {
		return true
	}
	for _, word := range before {
		base := filepath.Base(word)
		if slices.Contains(starters, base) || strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld.so") {
			return true
		}
	}
	return false
}

// engineProcess names the engine's program that a process is.
func engineProcess(p procInfo) (string, bool) {
	if path, _ := undeleted(p.exe); engineProgram(path) {
		return path, true
	}
	for i, path := range p.argv[:min(3, len(p.argv))] {
		if engineProgram(path) && started(p.argv[:i]) {
			path, _ = undeleted(path)
			return path, true
		}
	}
	if len(p.argv) > 1 && filepath.Base(p.argv[0]) == "1bit" && p.argv[1] == "serve" {
		return p.argv[0], true
	}
	return "", false
}

// hint says how a look-alike comes to run a package.
func (h *Host) hint(unit, program string, pl *place) string {
	if tree, ok := engineTree(program); ok && filepath.Dir(tree) != filepath.Clean(h.Store.Dir) {
		return fmt.Sprintf("%s is an engine outside of %s: move it to %s/1bit-FLAVOUR-ID, take it in with 1bit pkg import, name it in the unit, then: 1bit pkg adopt %s",
			tree, h.Store.Dir, h.Store.Dir, unit)
	}
	if filepath.Base(program) == "1bit" {
		return fmt.Sprintf("set Environment=%s=PROGRAM OF A PACKAGE in the unit, then: 1bit pkg switch %s ID", serverVariable, unit)
	}
	return fmt.Sprintf("let ExecStart= start a package's program instead and take that over with 1bit pkg adopt %s, or write a new unit with 1bit pkg service new", unit)
}

// layout are the places of programs in an engine's tree.
var layout = []string{"hrx/llama/bin", "vulkan/llama/bin", "lean/llama/bin", "zinc/*/bin"}

// engineTree finds the folder of the engine that a program belongs to, by the layout of a release.
func engineTree(program string) (string, bool) {
	dir := filepath.Dir(program)
	for _, below := range layout {
		tree := dir
		for range strings.Count(below, "/") + 1 {
			tree = filepath.Dir(tree)
		}
		if ok, err := filepath.Match(filepath.Join(tree, below), dir); err == nil && ok && filepath.IsAbs(program) && tree != "/" {
			return tree, true
		}
	}
	return "", false
}
