package detect

import "github.com/1bit-systems/pkg/internal/lazyregexp"

var nullLogprob = lazyregexp.New(`"logprob"\s*:\s*(?:null|[-+]?[A-Za-z])`)

// nullAt quotes the place of the first log-probability that is no number.
func nullAt(raw []byte) string {
	at := nullLogprob().FindIndex(raw)
	if at == nil {
		return quote(raw)
	}
	return around(raw, at[0])
}
