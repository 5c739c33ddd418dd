package realengine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/1bit-systems/pkg/internal/realengine"
)

func ExampleWriteModel() {
	var model bytes.Buffer
	if err := realengine.WriteModel(&model, realengine.Plain, 1); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(model.Bytes()[:4]), model.Len()/1000, "kB")
	// Output: GGUF 433 kB
}

func ExampleFetch() {
	dir, err := realengine.CacheDir()
	if err != nil {
		fmt.Println(err)
		return
	}
	tree, err := realengine.Fetch(context.Background(), dir, os.Stderr)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tree.Program("llama-server"), tree.Model(realengine.NaN1))
}
