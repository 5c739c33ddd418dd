package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// quoting looks for values that systemd does not take as they were meant: cut at a blank, lost for a percent sign, or
// with a ~ that only a shell would have replaced.
func quoting() Check {
	c := ofStatus("quoting",
		"systemd is no shell: it cuts a value at a blank, drops one with a stray percent sign and leaves ~ and $HOME as they are, all without an error.",
		`Write the whole assignment in double quotes, %% for a percent sign and %h for the home folder, then: systemctl --user daemon-reload`)
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		err := told(ctx, l, add)
		services, _ := l.services()
		for _, s := range services {
			if !s.loaded() {
				continue
			}
			remedy := s.typed("write %h in its place, then: systemctl --user daemon-reload && 1bit pkg restart UNIT")
			for key, set := range s.Settings.Environment() {
				if slices.ContainsFunc(strings.Split(set.Value, ":"), unexpanded) {
					add(fmt.Sprintf("%s:%d", set.File, set.Line), remedy, "%s: %s begins with ~ or $HOME, which systemd leaves as it is", s.where, key)
				}
			}
			for _, command := range s.Settings.Start() {
				if !ofShell(command) && slices.ContainsFunc(command.Argv, unexpanded) {
					add(fmt.Sprintf("%s:%d", command.File, command.Line), remedy, "%s: a word of its command begins with ~ or $HOME, which systemd leaves as it is", s.where)
				}
			}
		}
		return err
	}
	return c
}

// unexpanded tells whether a word begins with what a shell replaces by the home folder and systemd does not.
func unexpanded(word string) bool {
	return word == "~" || strings.HasPrefix(word, "~/") || strings.HasPrefix(word, "$HOME/")
}

// ofShell tells whether a command hands its words to a shell.
func ofShell(c systemd.StartCommand) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"}, filepath.Base(c.Path))
}
