package linkage_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// The real engine's tree, whose programs find nothing by themselves: its
// launchers tell the loader.
func TestAgreesWithLoaderOnTheRealEngine(t *testing.T) {
	loader := linkage.LoaderOf(t)
	tree := realengine.Require(t)
	for _, name := range realengine.Programs() {
		program := "hrx/llama/libexec/" + name
		if diff := cmp.Diff(linkage.Ask(t, loader, filepath.Join(tree.Dir, program)), linkage.Ours(t, tree.Dir, program)); diff != "" {
			t.Errorf("%s: (-loader +ours)\n%s", name, diff)
		}
	}
}
