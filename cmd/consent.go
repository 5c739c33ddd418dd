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
// found out and stand above the question. The error does not name the act: who asks does.
func (a *app) authorise(act string, notes []string) error {
	switch a.config.Restart {
	case restartFree:
		return nil
	case restartGrant:
		return fmt.Errorf("%w: it needs a signed grant by the policy \"restart: grant\" of %s, and this version cannot check grants",
			fleet.ErrRefused, a.config.policyFile)
	}
	if a.json() {
		return fmt.Errorf("%w: it needs the owner's consent, and with -o json the owner is not asked: leave that out, on a terminal, or write \"restart: free\" into %s",
			fleet.ErrRefused, a.config.policyFile)
	}
	if !ui.IsTerminal(a.stdin) {
		return fmt.Errorf("%w: it needs the owner's consent, asked on a terminal (ssh -t gives one); an owner who wants no question, as for scripts and timers, writes \"restart: free\" into %s",
			fleet.ErrRefused, a.config.policyFile)
	}
	a.line.Clear()
	a.note(a.stderr, notes)
	a.told = append(a.told, notes...)
	fmt.Fprintf(a.stderr, "%s? [y/N] ", ui.Clean(strings.ToUpper(act[:1])+act[1:]))
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return fmt.Errorf("%w: no answer to the question", fleet.ErrRefused)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("%w: the owner said no", fleet.ErrRefused)
}
