package neighbour_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

func ExampleNew() {
	dir, err := os.MkdirTemp("", "neighbour-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	from := time.Now()
	us := func() int64 { return time.Since(from).Microseconds() }
	n, err := neighbour.New(neighbour.Options{
		Spec: neighbour.Spec{Kind: neighbour.Command, Args: []string{"sh", "-c", "echo did some; sleep 60"}, Proof: "^did"},
		Dir:  dir, Now: us,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.Loop(ctx) }()
	<-n.Worked() // the load may begin
	stop()
	err = <-done
	s := n.Summary(0, us())
	fmt.Println(s.Units, s.Unit, s.Runs, "run,", s.Failed, "failed:", err)
	// Output: 1 lines 1 run, 0 failed: <nil>
}
