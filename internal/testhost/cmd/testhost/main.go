// Command testhost boots a test host, runs one command inside, and ends the host again. The demo uses it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/1bit-systems/pkg/internal/testhost"
)

const usage = `usage: testhost run [--user NAME] [--bring PATH]... [--env KEY=VALUE]... -- COMMAND [ARGUMENT]...

Boots a test host, runs the command inside with the standard streams passed through, ends the host, and exits with
the command's status. --user is root (default) or ai. --bring copies a file or folder to /opt/onebit inside.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "testhost:", err)
		os.Exit(125)
	}
}

type list []string

func (l *list) String() string     { return fmt.Sprint(*l) }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

func run(ctx context.Context, args []string) (err error) {
	var bring, env list
	flags := flag.NewFlagSet("testhost run", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	user := flags.String("user", "root", "")
	flags.Var(&bring, "bring", "")
	flags.Var(&env, "env", "")
	if len(args) == 0 || args[0] != "run" {
		return errors.New(usage)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New(usage)
	}
	host, err := testhost.Start(ctx, testhost.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Stop()) }()
	for _, path := range bring {
		if _, err := host.Bring(path); err != nil {
			return err
		}
	}
	cmd := host.Command(ctx, *user, flags.Arg(0), flags.Args()[1:]...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
