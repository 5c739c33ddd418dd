package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
)

var everyAPI = []string{APICompletion, APICompletions, APIChat}

// Every path of the real server, whole and in events: answers are sound, and a
// NaN shows as a null log-probability in all of them.
func TestRealShapes(t *testing.T) {
	tree := realengine.Require(t)
	for _, model := range []string{"plain", "nan", "nan1"} {
		_, c, _ := serveReal(t, tree, model)
		for _, c.API = range everyAPI {
			for _, streamed := range []bool{false, true} {
				t.Run(fmt.Sprint(model, " ", c.API, " ", streamed), func(t *testing.T) { realShape(t, c, model, streamed) })
			}
		}
	}
}

func realShape(t *testing.T, c *Client, model string, streamed bool) {
	const n = 12
	a, err := c.Complete(t.Context(), CompletionRequest{Prompt: "a <b> & \"c\"", NPredict: n, NProbs: 2, Stream: streamed, IgnoreEOS: true})
	if err != nil {
		t.Fatal(err)
	}
	faults := a.Faults()
	if bad := len(faults) == 1 && faults[0].Face == FaceNaN; bad != (model != "plain") || len(faults) > 1 {
		t.Errorf("faults %v", faults)
	}
	if len(a.Tokens) != n || a.TokensPredicted != n || a.TokensEvaluated == 0 || a.Content == "" || !a.StoppedAtLimit {
		t.Errorf("%d tokens, %d predicted, %d evaluated, at the limit %v: %q", len(a.Tokens), a.TokensPredicted, a.TokensEvaluated, a.StoppedAtLimit, a.Content)
	}
	if model == "plain" {
		for i, tok := range a.Tokens {
			if tok.ID < 0 || tok.Logprob == nil || tok.TopGap == nil || *tok.TopGap < 0 || string(tok.Bytes) != tok.Text {
				t.Errorf("token %d: %+v", i, tok)
			}
		}
	}
	if a.Streamed != streamed || a.Cut || streamed && (a.Events < n || a.FirstToken <= 0) || !streamed && a.FirstToken != 0 {
		t.Errorf("streamed %v, cut %v, %d events, first token after %s", a.Streamed, a.Cut, a.Events, a.FirstToken)
	}
	if (a.SlotID >= 0) != (c.API == APICompletion) {
		t.Errorf("slot %d", a.SlotID)
	}
}

// A server that stops or is killed in mid-request shows as what it is, and the
// request is sent once.
func TestRealServerEndsInMidRequest(t *testing.T) {
	tree := realengine.Require(t)
	for _, streamed := range []bool{false, true} {
		for sig, silent := range map[syscall.Signal]bool{syscall.SIGSTOP: true, syscall.SIGKILL: false} {
			t.Run(fmt.Sprint(sig, " ", streamed), func(t *testing.T) {
				s, c, log := serveReal(t, tree, "plain")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				done := make(chan error, 1)
				go func() {
					_, err := c.Complete(ctx, CompletionRequest{Prompt: "a long tale", NPredict: 8000, NProbs: 1, Stream: streamed, IgnoreEOS: true})
					done <- err
				}()
				waitFor(t, "the request's launch", contains(log, "launch_slot_"))
				if err := syscall.Kill(s.PID(), sig); err != nil {
					t.Fatal(err)
				}
				if silent {
					cancel() // as its deadline would, only sooner
				}
				err := <-done
				if err == nil || errors.Is(err, context.Canceled) != silent {
					t.Errorf("after %s: %v", sig, err)
				}
				if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "launch_slot_") != 1 {
					t.Errorf("not one launch, %v:\n%s", err, text)
				}
			})
		}
	}
}
