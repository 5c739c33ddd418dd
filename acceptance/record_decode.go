package acceptance

import (
	"encoding/json"
	"fmt"
)

// decodeRequest reads the data of a request record. Nearly every line of a
// ledger is one, and as we write it: its keys in their order, plain text, no
// findings. Those are read by hand, several times as fast as by encoding/json;
// all others by it, with the same result.
func decodeRequest(data []byte, r *requestRecord) error {
	if readRequest(data, r) {
		return nil
	}
	*r = requestRecord{}
	if err := json.Unmarshal(data, r); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	return nil
}

// readRequest reports false, with r in any state, if data is not such a record.
func readRequest(data []byte, r *requestRecord) bool {
	c := cursor{b: data, separator: '{', ok: true}
	c.number(`"id":`, &r.ID)
	c.number(`"worker":`, &r.Worker)
	c.text(`"nonce":`, &r.Nonce)
	c.number(`"prompt_target":`, &r.PromptTarget)
	c.number(`"prompt_tokens":`, &r.PromptTokens)
	c.number(`"n_predict":`, &r.NPredict)
	c.truth(`"probs_asked":`, &r.ProbsAsked)
	c.number64(`"intended_us":`, &r.IntendedUS)
	c.number64(`"start_us":`, &r.StartUS)
	c.number64(`"end_us":`, &r.EndUS)
	c.text(`"outcome":`, &r.Outcome)
	c.number(`"status":`, &r.Status)
	c.number(`"slot":`, &r.Slot)
	c.number(`"predicted":`, &r.Predicted)
	c.number(`"observed":`, &r.Observed)
	c.number(`"bytes":`, &r.Bytes)
	c.text(`"sha256":`, &r.SHA256)
	c.text(`"kind":`, &r.Kind)
	c.number(`"sentinel":`, &r.Sentinel)
	c.number(`"number":`, &r.Number)
	c.number64(`"first_us":`, &r.FirstUS)
	c.text(`"error":`, &r.Error)
	c.number(`"chars":`, &r.Chars)
	c.number64(`"text_sum":`, &r.TextSum)
	return c.ok && string(c.b[c.i:]) == "}" && c.separator == ','
}

// cursor goes through an object of JSON whose keys come in a known order; any of
// them may be missing. ok is false once something was not plain.
type cursor struct {
	b         []byte
	i         int
	separator byte // before the next key: '{' before the first
	ok        bool
}

// at goes past a key, given with its quotes and colon, if it is the next.
func (c *cursor) at(key string) bool {
	from := c.i + 1
	if !c.ok || len(c.b)-from <= len(key) || c.b[c.i] != c.separator || string(c.b[from:from+len(key)]) != key {
		return false
	}
	c.i, c.separator = from+len(key), ','
	return true
}

func (c *cursor) number(key string, to *int) {
	var v int64
	if c.number64(key, &v); c.ok && v != 0 {
		*to = int(v)
	}
}

// mostDigits of a number surely fit an int64.
const mostDigits = 18

func (c *cursor) number64(key string, to *int64) {
	if !c.at(key) {
		return
	}
	i, negative := c.i, c.b[c.i] == '-'
	if negative {
		i++
	}
	from, v := i, int64(0)
	for ; i < len(c.b) && c.b[i] >= '0' && c.b[i] <= '9'; i++ {
		v = 10*v + int64(c.b[i]-'0')
	}
	n := i - from
	if c.ok = n > 0 && n <= mostDigits && (n == 1 || c.b[from] != '0'); !c.ok {
		return
	}
	if negative {
		v = -v
	}
	c.i, *to = i, v
}

func (c *cursor) truth(key string, to *bool) {
	if !c.at(key) {
		return
	}
	rest := c.b[c.i:]
	switch {
	case len(rest) > 4 && string(rest[:4]) == "true":
		c.i, *to = c.i+4, true
	case len(rest) > 5 && string(rest[:5]) == "false":
		c.i += 5
	default:
		c.ok = false
	}
}

// text takes a string of printable ASCII without escapes.
func (c *cursor) text(key string, to *string) {
	if !c.at(key) {
		return
	}
	if c.ok = c.b[c.i] == '"'; !c.ok {
		return
	}
	from := c.i + 1
	for i := from; i < len(c.b); i++ {
		switch ch := c.b[i]; {
		case ch == '"':
			c.i, *to = i+1, known(c.b[from:i])
			return
		case ch < ' ' || ch > '~' || ch == '\\':
			c.ok = false
			return
		}
	}
	c.ok = false
}

// known gives the commonest texts without a copy.
func known(b []byte) string {
	switch string(b) {
	case outcomeAnswered:
		return outcomeAnswered
	case kindSentinel:
		return kindSentinel
	}
	return string(b)
}
