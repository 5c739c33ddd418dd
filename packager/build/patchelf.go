package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/packager/linkage"
	"golang.org/x/sync/errgroup"
)

// rewrite gives copies of the files the RUNPATH that was worked out for them,
// by the program patchelf.
func (k *relinker) rewrite(ctx context.Context, c *content, w *workFolder) error {
	program, err := exec.LookPath("patchelf")
	if err != nil {
		files := "a file"
		if n := len(k.runpath); n > 1 {
			files = fmt.Sprintf("%d files", n)
		}
		return fmt.Errorf("rewrite the RUNPATH of %s: the program patchelf is not here: install the package patchelf: %w", files, exec.ErrNotFound)
	}
	dir, err := w.sub("rewritten")
	if err != nil {
		return err
	}
	if w.rewritten, err = os.OpenRoot(dir); err != nil {
		return fmt.Errorf("open work folder: %w", err)
	}
	paths := slices.Sorted(maps.Keys(k.runpath))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range paths {
		group.Go(func() error {
			file := filepath.Join(dir, fmt.Sprint(i))
			size, err := k.rewriteOne(inner, program, c, p, file)
			if err != nil {
				return fmt.Errorf("rewrite the RUNPATH of %s: %w", p, err)
			}
			k.files.lookup(p).Size = size
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, p := range paths {
		c.elsewhere[p] = place{w.rewritten, fmt.Sprint(i)}
	}
	return nil
}

// rewriteOne makes file out of the package's p, and returns its size. What
// patchelf did is checked: a RUNPATH that is not as it was asked for would be
// noticed only on another machine.
func (k *relinker) rewriteOne(ctx context.Context, program string, c *content, p, file string) (int64, error) {
	if err := copyContent(c, p, file); err != nil {
		return 0, err
	}
	want := k.runpath[p]
	// With both kinds there patchelf would change one of them.
	if o := k.objects[p]; len(want) == 0 || len(o.Runpath) > 0 && len(o.Rpath) > 0 {
		if err := patchelf(ctx, program, "--remove-rpath", file); err != nil {
			return 0, err
		}
	}
	if len(want) > 0 {
		if err := patchelf(ctx, program, "--set-rpath", strings.Join(want, ":"), file); err != nil {
			return 0, err
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	o, err := linkage.ReadFile(f, p)
	if err != nil {
		return 0, err
	}
	if o == nil || o.Damage != "" || !slices.Equal(o.Runpath, want) || len(o.Rpath) > 0 || !slices.Equal(o.Needed, k.objects[p].Needed) {
		return 0, fmt.Errorf("patchelf made something else of it than RUNPATH %q: try a newer patchelf", strings.Join(want, ":"))
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func copyContent(c *content, p, file string) error {
	from, err := c.open(p)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

func patchelf(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("patchelf %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return nil
}
