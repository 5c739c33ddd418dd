// Command realengine fetches the test engine and derives models and broken variants from it, for the demo.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/1bit-systems/pkg/internal/realengine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "realengine:", err)
		stop()
		os.Exit(1)
	}
}

var errUsage = errors.New("want one of:\n" +
	"  fetch              fetch the engine if need be and print the folder of its tree\n" +
	"  model KIND OUT     write a model: " + strings.Join(realengine.Kinds(), ", ") + "\n" +
	"  variant KIND DIR   make a changed copy of the tree: " + strings.Join(realengine.Variants(), ", "))

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "fetch":
		tree, err := fetch(ctx)
		if err != nil {
			return err
		}
		fmt.Println(tree.Dir)
		return nil
	case len(args) == 3 && args[0] == "model":
		out, err := os.Create(args[2])
		if err != nil {
			return err
		}
		return errors.Join(realengine.WriteModel(out, args[1], 1), out.Close())
	case len(args) == 3 && args[0] == "variant":
		tree, err := fetch(ctx)
		if err != nil {
			return err
		}
		return tree.Variant(args[1], args[2])
	}
	return errUsage
}

func fetch(ctx context.Context) (*realengine.Tree, error) {
	dir, err := realengine.CacheDir()
	if err != nil {
		return nil, err
	}
	return realengine.Fetch(ctx, dir, os.Stderr)
}
