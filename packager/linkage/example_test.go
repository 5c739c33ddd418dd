package linkage_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/internal/testelf"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// A package with one program, one library and a need that nothing meets.
func ExampleResolve() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := testelf.File{Interp: testelf.Interp, Runpath: []string{"$ORIGIN"}, Needed: []string{"libllama.so", "libamdhip64.so.7", "libc.so.6"}}
	_ = os.WriteFile(filepath.Join(dir, "llama-server"), server.Bytes(), 0o755)
	_ = os.WriteFile(filepath.Join(dir, "libllama.so"), testelf.File{}.Bytes(), 0o644)
	m := &packager.Manifest{Flavour: "hrx", ID: "3092596", Files: []packager.File{
		{Path: "libllama.so", Type: packager.TypeFile, Size: 1}, {Path: "llama-server", Type: packager.TypeFile, Size: 1},
	}}

	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer root.Close()
	objects, err := linkage.Inspect(context.Background(), root, m)
	if err != nil {
		panic(err)
	}
	l := linkage.Resolve(m, objects)
	fmt.Println(l.Machine, l.Inside["llama-server"]["libllama.so"], l.Runtime)
	for _, p := range l.Problems {
		fmt.Println(p.Path, p.What)
	}
	// Output:
	// x86_64 libllama.so [libc.so.6]
	// llama-server needs libamdhip64.so.7, which neither the package nor its host requirements provide
}
