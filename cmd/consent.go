package cmd

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
)

// owner is who the fleet asks for leave. Where nobody is asked it is nil, and the look before the question is saved.
func (a *app) owner() func(act string, notes []string) error {
	if a.config.Restart == restartFree {
		return nil
	}
	return a.authorise
}

// authorise asks the owner, by the policy of the configuration file. It is called before an act that arms or
// restarts a service, when nothing else stands in its way; act reads like "restart 1bit.service", notes are what was
// found out and stand above the question.
func (a *app) authorise(act string, notes []string) error {
	switch a.config.Restart {
	case restartFree:
		return nil
	case restartGrant:
		return fmt.Errorf("%s: %w: it needs a signed grant by the policy \"restart: grant\" of %s, and this version cannot check grants",
			act, fleet.ErrRefused, a.config.policyFile)
	}
	if a.json() {
		return fmt.Errorf("%s: %w: it needs the owner's consent, and with -o json the owner is not asked", act, fleet.ErrRefused)
	}
	if !ui.IsTerminal(a.stdin) {
		return fmt.Errorf("%s: %w: it needs the owner's consent, asked on a terminal; an owner who wants no question writes \"restart: free\" into %s",
			act, fleet.ErrRefused, a.config.policyFile)
	}
	for _, note := range notes {
		fmt.Fprintf(a.stderr, "note: %s\n", ui.Clean(note))
	}
	fmt.Fprintf(a.stderr, "%s? [y/N] ", ui.Clean(strings.ToUpper(act[:1])+act[1:]))
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s: %w: no answer to the question", act, fleet.ErrRefused)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("%s: %w: the owner said no", act, fleet.ErrRefused)
}
