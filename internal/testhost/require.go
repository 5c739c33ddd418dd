package testhost

import (
	"context"
	"os"
	"sync"
	"testing"
)

// shared boots the one host of this process. The end of the process ends it: its keeper sees to that.
var shared = sync.OnceValues(func() (*Host, error) { return Start(context.Background(), Options{}) })

// Require returns the host that all tests of this process share. Where none can run it skips the test with the
// reason, or fails it when ONEBIT_CI is set. A host that could run but does not is a failure.
func Require(t testing.TB) *Host {
	t.Helper()
	if err := Unable(); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	host, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return host
}
