// Package cmd is the command line: flags, configuration, output and exit codes. What the commands do lives in
// the packages below; here it is only asked for and shown.
//
// A command is three things in a file named after it: newXCommand, xOptions and its run method. The app carries
// what they share, so that nothing else reads the environment, the clock or the standard streams.
package cmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/internal/ui"
)

// Version is what the release build stamps in.
var Version = "development"

// app is what every command is given.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	environ        []string
	now            func() time.Time
	uid            int
	user           string

	flags  globalFlags
	config config

	line *ui.Line // what is waited for; nil where nobody sees it
	told []string // notes that the owner has read above a question
	log  *slog.Logger
}

type globalFlags struct {
	output    string
	config    string
	scope     string
	dataHome  string
	stateHome string
	yes       bool
	quiet     bool
	noColor   bool
	logLevel  string
}

// Main runs the program with the process's own arguments and streams and returns its exit status.
func Main() int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signals = append(signals, syscall.SIGHUP) // the terminal was closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, environ: os.Environ(), now: time.Now, uid: os.Getuid(), user: userName(),
	}
	return a.main(ctx, os.Args[1:])
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

func (a *app) main(ctx context.Context, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		a.reportError(err)
	}
	return exitCode(err)
}

// setUp reads the configuration, once the flags are known.
func (a *app) setUp(cmd *cobra.Command, _ []string) error {
	switch a.flags.output {
	case "text", "json":
	default:
		return usagef("unknown output format %q: it is text or json", a.flags.output)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.flags.logLevel)); err != nil {
		return usagef("unknown log level %q: it is debug, info, warn or error", a.flags.logLevel)
	}
	a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	c, err := a.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	a.config = c
	if !a.flags.quiet && !a.json() {
		a.line = ui.NewLine(a.stderr)
	}
	return nil
}

func (a *app) json() bool { return a.flags.output == "json" }

// progress is a bar on a terminal's standard error, and nothing elsewhere.
func (a *app) progress(what string) *ui.Progress {
	if a.flags.quiet || a.json() {
		return nil
	}
	return ui.NewProgress(a.stderr, what)
}
