package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
)

// The log of today's server joins completely, and what its clients saw matches it.
func TestRealLogJoins(t *testing.T) {
	tree := realengine.Require(t)
	start := time.Now()
	s, c, log := serveReal(t, tree, "plain")

	var mu sync.Mutex
	var replies []Reply
	ask := func(prompt string, n int) {
		sent := time.Since(start)
		a, err := c.Complete(t.Context(), CompletionRequest{Prompt: prompt, NPredict: n})
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		replies = append(replies, Reply{Slot: a.SlotID, Tokens: a.TokensPredicted, Sent: sent, Received: time.Since(start)})
	}
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 6 {
				ask(fmt.Sprintf("%d%d unlike the others", i, w), 4+3*i+w)
			}
		})
	}
	workers.Wait()
	ask("the same question", 4)
	ask("the same question", 4)                     // on the same slot, by the beginning of its prompt
	ask(strings.Repeat("too long ", 2000), 4)       // an error, which takes a slot for a moment and names none
	ask("the same question, and one more", 5)       // after it
	gone, cancel := context.WithCancel(t.Context()) // and one that nobody waits for
	time.AfterFunc(100*time.Millisecond, cancel)
	_, _ = c.Complete(gone, CompletionRequest{Prompt: "never to be read", NPredict: 20})
	ask("last", 6)
	if err := s.Stop(t.Context(), 10*time.Second); err != nil {
		t.Error(err)
	}

	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	tasks, j := joined(string(raw))
	if len(tasks) != len(replies)+1 || j.Loose != 0 || j.Orphans != 0 {
		t.Fatalf("%d tasks for %d requests, %d loose, %d orphans\n%s\n%s", len(tasks), len(replies)+1, j.Loose, j.Orphans, brief(tasks), raw)
	}
	first, failed, lcp := 0, 0, 0
	for _, task := range tasks {
		whole := task.Tokens > 0 && task.PromptTokens > 0 && task.TotalMS > 0 && task.Context > 0 && task.GraphsReused > 0
		if !task.Finished || task.How == "" || task.Life != 1 || task.Selected > task.Launched || task.Launched >= task.Released || whole == (task.Error != "") {
			t.Errorf("%+v", task)
		}
		switch {
		case task.NeverUsed:
			first++
		case task.Error != "":
			failed++
		case task.How == SelectedLCP && task.Similarity > 0.1:
			lcp++
		}
	}
	if first != 4 || failed != 1 || lcp < 1 {
		t.Errorf("%d slots used first, %d failed, %d by LCP: %s", first, failed, lcp, brief(tasks))
	}
	used := map[int]bool{}
	for i, at := range MatchReplies(tasks, replies) {
		r := replies[i]
		if r.Slot < 0 {
			if at != -1 {
				t.Errorf("the error goes with task %d", at)
			}
			continue
		}
		if at < 0 || used[at] || tasks[at].Slot != r.Slot || tasks[at].Tokens != r.Tokens {
			t.Errorf("reply %+v goes with task %d", r, at)
		}
		used[at] = true
	}
	if len(used) != len(replies)-1 {
		t.Errorf("%d of %d replies matched", len(used), len(replies)-1)
	}
	if t.Failed() {
		t.Logf("%s\n%s", brief(tasks), raw)
	}
}
