package realengine

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var (
	//go:embed launchers/exits.sh
	exitsLauncher string
	//go:embed launchers/hangs.sh
	hangsLauncher string
	//go:embed launchers/other_model.sh
	otherModel string
)

// The variants of a tree beside those named after a kind of model, which serve that model, whichever they are given.
const (
	Exits = "exits" // llama-server exits with 1 at once
	Hangs = "hangs" // llama-server hangs while it loads and never listens
)

// Variants lists the variants of a tree.
func Variants() []string { return []string{Plain, Exits, Hangs, NaN, NaN1, Trig} }

// Variant makes a changed copy of the tree at dst, which must not be there. [Plain] is an unchanged copy;
// [Exits] and [Hangs] have a llama-server that does that; [NaN1], [NaN] and [Trig] serve that model in place of
// the one they are told to: NaN1 makes fluent text with NaN underneath.
func (t *Tree) Variant(variant, dst string) error {
	if !slices.Contains(Variants(), variant) {
		return fmt.Errorf("variant %q: want one of %v", variant, Variants())
	}
	if err := t.Copy(dst); err != nil {
		return err
	}
	launcher := ""
	switch variant {
	case Plain:
		return nil
	case Exits:
		launcher = exitsLauncher
	case Hangs:
		launcher = hangsLauncher
	default:
		share := filepath.Join(dst, llamaDir, "share")
		if err := makeDirs(share); err != nil {
			return fmt.Errorf("make %s variant: %w", variant, err)
		}
		if err := copyFile(t.Model(variant), filepath.Join(share, "model.gguf"), 0o644); err != nil {
			return fmt.Errorf("make %s variant: %w", variant, err)
		}
		loader, err := filepath.Glob(filepath.Join(dst, llamaDir, runtimeDir, "ld-*"))
		if err != nil || len(loader) != 1 {
			return fmt.Errorf("make %s variant: %d loaders in the tree, want one", variant, len(loader))
		}
		launcher = launcherScript(filepath.Base(loader[0]), strings.TrimLeft(otherModel, "\n"))
	}
	server := filepath.Join(dst, llamaDir, "bin", "llama-server")
	if err := os.Remove(server); err != nil {
		return fmt.Errorf("make %s variant: %w", variant, err)
	}
	if err := writeFile(server, launcher, 0o755); err != nil {
		return fmt.Errorf("make %s variant: %w", variant, err)
	}
	return nil
}
