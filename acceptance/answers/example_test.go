package answers_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/acceptance/answers"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "answers.zst")
	w, err := answers.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Add(7, []byte(`{"content":"four"}`)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	r, err := answers.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	raw, err := r.Get(7)
	fmt.Printf("%s %v\n", raw, err)
	// Output: {"content":"four"} <nil>
}
