package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/acceptance"
)

// A plan says before it is run what it cannot show.
func ExampleLoadPlan() {
	dir, err := os.MkdirTemp("", "plan")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "plan.yaml")
	text := "name: short\nmodel: model.gguf\np0: 0.002\nload: {requests: 300}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	plan, err := acceptance.LoadPlan(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, note := range plan.Notes() {
		fmt.Println(note)
	}
	// Output:
	// cannot pass: the bound at 300 requests is 0.009936 > p0 0.002, needs 1497 requests
}
