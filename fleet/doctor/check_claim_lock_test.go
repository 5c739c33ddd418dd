package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
)

// A claim that should have ended is found by what its holder wrote into the lock.
func TestClaimOverItsTime(t *testing.T) {
	lock := claim.Lock{Path: filepath.Join(t.TempDir(), "lock")}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := claim.Run(ctx, claim.Options{
			Lock: lock, Label: "bench", Limit: time.Hour, Grace: time.Second, User: "me", Now: time.Now,
			Program: "/bin/sleep", Args: []string{"600"}, Env: os.Environ(), Note: t.Logf, Guard: []string{os.Args[0], "claim-guard"},
		})
		ended <- err
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Logf("the claim ended with %v", err)
		}
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if holder, held, err := lock.Holder(); err == nil && held && holder != nil && holder.Label == "bench" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the claim does not begin")
		}
	}
	look := func(now time.Time) (out []Finding) {
		l := &look{Options: Options{Claim: lock, Now: now}}
		if err := claimLock().find(t.Context(), l, found(&out)); err != nil {
			t.Error(err)
		}
		return out
	}
	if out := look(time.Now()); len(out) > 0 {
		t.Errorf("of a claim within its time %+v is found", out)
	}
	out := look(time.Now().Add(2 * time.Hour))
	if len(out) != 1 || !strings.Contains(out[0].What, `the claim "bench" of me should have ended at`) {
		t.Errorf("two hours later %+v is found", out)
	}
}
