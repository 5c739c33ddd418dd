package build_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/packager/build"
)

func ExampleBuild() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	recipe := filepath.Join(dir, "recipe.yaml")
	for name, content := range map[string]string{
		filepath.Join(dir, "1bit"): "#!/bin/sh\necho version: 7\n",
		recipe:                     "flavour: hrx\ninclude: [1bit]\nentry_points: {1bit: 1bit}\ncomponents: {engine: {commit: 3092596c1a}}\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := build.Build(context.Background(), build.Options{
		RecipePath: recipe, Tree: dir, Out: filepath.Join(dir, "out"), Version: "v2026.44",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Manifest.Name(), r.Manifest.Version)
	fmt.Println(filepath.Base(r.Path))
	// Output:
	// hrx-3092596 2026.44.0
	// 1bit-hrx-3092596-linux-x86_64.tar.zst
}
