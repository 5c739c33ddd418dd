package realengine

import (
	"os"
	"testing"
)

// Require returns the engine in the checkout's cache, after fetching it if need be. Where that is impossible it
// skips the test with the reason, or fails it when ONEBIT_CI is set.
func Require(t testing.TB) *Tree {
	t.Helper()
	dir, err := CacheDir()
	if err == nil {
		var tree *Tree
		if tree, err = Fetch(t.Context(), dir, t.Output()); err == nil {
			return tree
		}
	}
	if os.Getenv("ONEBIT_CI") != "" {
		t.Fatalf("no real engine: %v", err)
	}
	t.Skipf("no real engine: %v", err)
	return nil
}
