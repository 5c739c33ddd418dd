package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// A tokenCounter has the server count the tokens of a text: by its tokenizer, or
// where it has none to ask by its answer to a request for one token, which says
// how many its prompt has. Such a question is a request like any other, so that
// it is only asked while there is no load.
type tokenCounter struct {
	client   *engine.Client
	deadline time.Duration
	byAnswer bool
	template int // tokens of a chat that are not the text's; 0 where the tokenizer is asked
	answered int // requests for one token
}

// errUncounted says that nobody counts tokens for us.
var errUncounted = errors.New("the tokens of prompts cannot be counted")

// An unsound answer to a question of the runner's own is judged like any other.
type unsound struct{ exchange *detect.Exchange }

func (u *unsound) Error() string {
	return fmt.Sprintf("status %d, and no sound answer to a request for one token", u.exchange.Answer.Status)
}

// shortest is a text of one token.
const shortest = "a"

// newTokenCounter finds out how the server counts.
func newTokenCounter(ctx context.Context, c *engine.Client, deadline time.Duration) (*tokenCounter, error) {
	t := &tokenCounter{client: c, deadline: deadline}
	_, err := t.count(ctx, shortest)
	if !errors.Is(err, engine.ErrNotServed) {
		return t, err
	}
	t.byAnswer = true
	return t, t.measureTemplate(ctx)
}

// measureTemplate takes what a chat has more than its text for the template.
func (t *tokenCounter) measureTemplate(ctx context.Context) error {
	n, err := t.count(ctx, shortest)
	if err == nil && t.client.API == engine.APIChat {
		t.template = n - 1
	}
	return err
}

// count gives the tokens of a text.
func (t *tokenCounter) count(ctx context.Context, text string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, t.deadline)
	defer cancel()
	if !t.byAnswer {
		return t.client.Tokenize(ctx, text)
	}
	a, err := t.client.Complete(ctx, engine.CompletionRequest{Prompt: text, NPredict: 1})
	if err != nil {
		return 0, err
	}
	t.answered++
	switch {
	case a.Status == http.StatusNotFound || a.Status == http.StatusMethodNotAllowed || a.Status == http.StatusNotImplemented:
		return 0, fmt.Errorf("%w: the server has no POST /tokenize, and answers %s with status %d", errUncounted, pathOf(t.client.API), a.Status)
	case len(a.Faults()) > 0:
		return 0, &unsound{&detect.Exchange{ID: -1, NPredict: 1, Answer: a}}
	case a.TokensEvaluated <= t.template:
		return 0, fmt.Errorf("%w: the server has no POST /tokenize, and its answers to %s do not tell in usage.prompt_tokens how many the prompt has",
			errUncounted, pathOf(t.client.API))
	}
	return a.TokensEvaluated - t.template, nil
}

// over says of an answer that its prompt is longer than its length, or "".
func (t *tokenCounter) over(pr prompt, a *engine.Answer) string {
	if n := a.TokensEvaluated - t.template; t.byAnswer && n > pr.Target {
		return fmt.Sprintf("prompt %d has %d tokens, the plan has %d for it: the server's counts of words do not add up, and it has no /tokenize", pr.ID, n, pr.Target)
	}
	return ""
}

// pathOf is where an API is asked.
func pathOf(api string) string {
	switch api {
	case engine.APICompletions:
		return "/v1/completions"
	case engine.APIChat:
		return "/v1/chat/completions"
	}
	return "/completion"
}
