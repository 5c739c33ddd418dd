package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/build"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// The exit statuses. They are part of the interface.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotFound   = 3
	exitRefused    = 4
	exitIntegrity  = 5
	exitNoVerdict  = 6
	exitBusy       = 7
	exitVerdictBad = 8
)

const exitCodesText = `Exit statuses of every 1bit command:

  0  done
  1  failed; also: the new package failed and the service went back to the one before; the doctor found something
  2  wrong usage: flags, arguments, a recipe, a plan or the configuration file
  3  not found: a unit, a package or a file that was named
  4  refused by policy: the owner, a package in use, a hold, a setting that would win over ours, a blocked package,
     a checkout with changes, a required fix that is not carried
  5  integrity: a digest, a damaged or hostile archive, another package of the same name, a damaged proposal
  6  verdict not reached: the soak was inconclusive or invalid
  7  busy: another command holds the lock
  8  verdict fail: the soak found a fault

"1bit claim run" ends as its command does: with its status, or 128 and the number of the signal that ended it. 124: the time
limit; 125: it failed itself, for whatever reason; 126, 127: the command cannot be executed, is not found.
`

func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit statuses mean", Long: exitCodesText}
}

// usageError is a mistake in how the program was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// statusError ends the program with a status that the output before it has already explained.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// A class of errors has one exit status and, where there is something to do that the message does not say, a hint.
type errorClass struct {
	is   error
	code int
	hint string
}

var errorClasses = []errorClass{
	{build.ErrRecipe, exitUsage, ""},
	{build.ErrUnfit, exitFailed, ""},
	{build.ErrDifferent, exitIntegrity, ""},
	{build.ErrDirty, exitRefused, "--allow-dirty makes a package that says so"},
	{build.ErrFixMissing, exitRefused, "build it from commits that carry the fix, name the checkout with --source, commit what is dirty in it, fetch what its history lacks, or require less"},
	{acceptance.ErrPlan, exitUsage, ""},
	{incident.ErrShape, exitUsage, "--model names the model; --write shows the plan before it is run"},
	{acceptance.ErrEvidence, exitUsage, "name an evidence folder that is not there yet; a run that was cut off goes on with 1bit accept resume"},
	{acceptance.ErrRunning, exitBusy, "1bit accept watch follows it"},
	{store.ErrAmbiguous, exitUsage, "name it by its digest, or by flavour and id"},
	{store.ErrNotInstalled, exitNotFound, "1bit pkg list shows what is installed"},
	{store.ErrInUse, exitRefused, "switch the service to another package (or unswitch it), or take the package out of the files that are named, first"},
	{store.ErrRefused, exitRefused, ""},
	{store.ErrPlace, exitUsage, ""},
	{store.ErrChanged, exitIntegrity, ""},
	{store.ErrDifferent, exitIntegrity, "a package is never replaced: give it another id with --id when it is built, or remove the installed one"},
	{store.ErrBusy, exitBusy, "try again when the other command has ended"},
	{packager.ErrIntegrity, exitIntegrity, "nothing was changed"},
	{fleet.ErrProposal, exitIntegrity, ""},
	{systemd.ErrNoUnit, exitNotFound, "systemctl list-units --type=service shows the units (with --user for those of a user)"},
	{systemd.ErrNoBus, exitFailed, ""},
	{systemd.ErrNoJournal, exitFailed, ""},
	{fleet.ErrRefused, exitRefused, ""},
	{fleet.ErrName, exitUsage, ""},
	{fleet.ErrBusy, exitBusy, "try again when the other command has ended"},
	{fleet.ErrReturned, exitFailed, ""},
	{fs.ErrNotExist, exitNotFound, ""},
	{context.Canceled, exitFailed, ""},
	{fs.ErrPermission, exitFailed, "act as the account that owns it: sudo for what belongs to the system, sudo -iu NAME for another user's"},
}

func classify(err error) errorClass {
	var own *claimError
	if errors.As(err, &own) {
		return errorClass{code: own.code, hint: claimHint(err)}
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return errorClass{code: exitUsage}
	}
	for _, c := range errorClasses {
		if errors.Is(err, c.is) {
			c.hint = or(limitHint(err), c.hint)
			if c.is == fs.ErrPermission && strings.Contains(err.Error(), "act as the account") {
				c.hint = ""
			}
			return c
		}
	}
	return errorClass{code: exitFailed}
}

func exitCode(err error) int {
	var status statusError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	}
	return classify(err).code
}

// reportError says what went wrong on standard error: a sentence and a hint, or a JSON object.
func (a *app) reportError(err error) {
	var status statusError
	if errors.As(err, &status) {
		return
	}
	c := classify(err)
	if errors.Is(err, context.Canceled) {
		text := strings.TrimSuffix(err.Error(), ": "+context.Canceled.Error())
		if !strings.Contains(text, "interrupted") {
			text = "interrupted: " + text
		}
		err = errors.New(text)
	}
	if a.json() {
		_ = json.NewEncoder(a.stderr).Encode(map[string]any{
			"error": errorDocument{Message: err.Error(), Hint: c.hint, ExitCode: c.code},
		})
		return
	}
	a.line.Clear()
	fmt.Fprintf(a.stderr, "1bit: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if c.hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", c.hint)
	}
}

type errorDocument struct {
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	ExitCode int    `json:"exit_code"`
}
