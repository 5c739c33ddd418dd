package load_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/1bit-systems/pkg/acceptance/load"
)

func ExampleRun() {
	begin := time.Now()
	clock := func() int64 { return time.Since(begin).Microseconds() }
	next := func(_ context.Context, id int) (string, bool) { return fmt.Sprint("prompt ", id), true }
	var sent atomic.Int32
	load.Run(context.Background(), load.Schedule{InFlight: 4, Requests: 10}, clock, next,
		func(ctx context.Context, worker int, intendedUS int64, prompt string) { sent.Add(1) })
	fmt.Println(sent.Load())
	// Output: 10
}
