package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// loadedStart compares the commands that the manager has loaded with those of our drop-in. The error wraps
// ErrRefused.
func loadedStart(u *systemd.Unit, specs systemd.Specifiers, d *DropIn) error {
	if len(d.Start) == 0 {
		return nil
	}
	var want []systemd.Command
	for _, value := range d.Start {
		commands, err := systemd.SplitCommands(value)
		if err != nil {
			return nil // an owner's line, as it was: only systemd itself can tell what it makes of it
		}
		for _, words := range commands {
			var argv []string
			for i, word := range words {
				text := word.Text
				if i == 0 {
					text = strings.TrimLeft(text, prefixes)
				}
				text, unsure, ok := specs.Expand(u, text)
				if unsure != "" || !ok {
					return nil
				}
				argv = append(argv, text)
			}
			path := argv[0]
			if strings.Contains(words[0].Text[:len(words[0].Text)-len(strings.TrimLeft(words[0].Text, prefixes))], "@") {
				argv = argv[1:]
			}
			want = append(want, systemd.Command{Path: path, Argv: argv})
		}
	}
	same := slices.EqualFunc(want, u.ExecStart, func(w, got systemd.Command) bool {
		return (filepath.Clean(w.Path) == filepath.Clean(got.Path) || !filepath.IsAbs(w.Path)) && slices.Equal(w.Argv, got.Argv)
	})
	if !same {
		return fmt.Errorf("%w: the manager loaded the commands %v and not %v", ErrRefused, u.ExecStart, want)
	}
	return nil
}
