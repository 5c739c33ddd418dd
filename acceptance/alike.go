package acceptance

import (
	"fmt"
	"net/http"
)

// alike looks whether a server answers what it was asked. One that gives every
// prompt the same text may be sound, a cache or a stub: it was not under the load
// that the plan means.
type alike struct {
	prompts int
	text    int64 // textSum of the first
	differ  bool
}

// Answers of a few tokens may be the same by chance, and so may few answers.
const (
	alikeTokens  = 8 // asked for
	alikePrompts = 10
)

func (a *alike) add(r *requestRecord) {
	if r.Kind != kindUnique || r.Status != http.StatusOK || r.NPredict < alikeTokens || r.TextSum == 0 {
		return
	}
	if a.prompts == 0 {
		a.text = r.TextSum
	}
	a.prompts++
	a.differ = a.differ || r.TextSum != a.text
}

// problem says that all answers were the same, or "".
func (a *alike) problem() string {
	if a.differ || a.prompts < alikePrompts {
		return ""
	}
	return fmt.Sprintf("all %d different prompts got the same answer", a.prompts)
}
