package source_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/1bit-systems/pkg/engine/source"
)

// A fix is picked for a release branch and reverted on main.
func ExampleCheckout_Carries() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("sh", "-ec", `
		export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
		export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1790000000 +0000' GIT_COMMITTER_DATE='1790000000 +0000'
		git init -q -b main && git commit -q --allow-empty -m begin && git branch release
		echo barrier > kernel && git add kernel && git commit -q -m 'close the race' && git tag fix
		git revert --no-edit fix && git switch -q release && git commit -q --allow-empty -m other && git cherry-pick fix`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Printf("%v: %s", err, out)
		return
	}
	id := func(revision string) string {
		cmd := exec.Command("git", "rev-parse", revision)
		cmd.Dir = dir
		out, _ := cmd.Output()
		return string(out[:40])
	}
	c, err := source.Open(context.Background(), dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pin := range []string{"main", "release"} {
		answer, err := c.Carries(context.Background(), id(pin), id("fix"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pin, *answer.Carried, answer.How)
	}
	// Output:
	// main false reverted by 15c6083
	// release true same patch as 735ae7e
}
