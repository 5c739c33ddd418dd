package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// An Answer is one reply to a completion. Raw is what came over the wire; the
// other fields are read from it as far as it could be read.
type Answer struct {
	Status          int
	Raw             []byte
	Content         string
	Tokens          []Token // one an entry of the log-probabilities; empty if none came
	TokenIDs        []int   // with CompletionRequest.ReturnTokens
	SlotID          int     // -1 if the reply names none
	TokensPredicted int
	TokensEvaluated int
	Truncated       bool
	StoppedAtLimit  bool // ended because n_predict was reached
	ProbsAsked      bool // the request asked for log-probabilities

	decodeErr  error
	inBand     string // the error object of a reply that says 200
	contentAt  int    // where the content's bytes stand in Raw, still escaped
	contentEnd int
}

// errNotAnAnswer is the fault of a JSON reply that holds no field of an answer.
var errNotAnAnswer = errors.New("the reply has no field of an answer")

// A Token is one generated token with its log-probability.
type Token struct {
	ID      int
	Text    string
	Bytes   []byte
	Logprob *float64 // nil: JSON null or out of range, so not finite
	// Alternatives counts the other candidates whose log-probability came back
	// as null.
	NullAlternatives int
}

// rawToken is an entry of completion_probabilities or of an OpenAI-shaped
// logprobs.content. A missing logprob tells nothing, a null one tells NaN.
type rawToken struct {
	ID      int             `json:"id"`
	Token   string          `json:"token"`
	Bytes   []int           `json:"bytes"`
	Logprob json.RawMessage `json:"logprob"`
	Top     []struct {
		Logprob json.RawMessage `json:"logprob"`
	} `json:"top_logprobs"`
}

// ParseAnswer reads a reply. It takes the shapes of /completion and of the
// OpenAI-compatible paths. It never fails: what cannot be read is a fault of
// the Answer.
func ParseAnswer(status int, raw []byte, probsAsked bool) *Answer {
	a := &Answer{Status: status, Raw: raw, SlotID: -1, ProbsAsked: probsAsked}
	a.contentAt, a.contentEnd = rawContent(raw)
	var body struct {
		Content         *string    `json:"content"`
		Tokens          []int      `json:"tokens"`
		SlotID          *int       `json:"id_slot"`
		TokensPredicted int        `json:"tokens_predicted"`
		TokensEvaluated int        `json:"tokens_evaluated"`
		Truncated       bool       `json:"truncated"`
		StopType        string     `json:"stop_type"`
		StoppedLimit    bool       `json:"stopped_limit"`
		Probs           []rawToken `json:"completion_probabilities"`
		Choices         []struct {
			Text    string `json:"text"`
			Message struct {
				Content   string `json:"content"`
				Reasoning string `json:"reasoning_content"`
			} `json:"message"`
			Logprobs *struct {
				Content []rawToken `json:"content"`
			} `json:"logprobs"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Completion int `json:"completion_tokens"`
			Prompt     int `json:"prompt_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if !json.Valid(raw) {
		a.decodeErr = json.Unmarshal(raw, &struct{}{})
		return a
	}
	if a.decodeErr = json.Unmarshal(raw, &body); a.decodeErr != nil {
		return a
	}
	if status == http.StatusOK {
		switch {
		case body.Error != nil && string(body.Error) != "null":
			a.inBand = excerpt(body.Error)
		case body.Content == nil && body.Choices == nil && body.Probs == nil:
			a.decodeErr = errNotAnAnswer
		}
	}
	if body.Content != nil {
		a.Content = *body.Content
	}
	a.TokenIDs, a.Truncated = body.Tokens, body.Truncated
	a.TokensPredicted, a.TokensEvaluated = body.TokensPredicted, body.TokensEvaluated
	a.StoppedAtLimit = body.StopType == "limit" || body.StoppedLimit
	if body.SlotID != nil {
		a.SlotID = *body.SlotID
	}
	entries := body.Probs
	for _, c := range body.Choices {
		a.Content += c.Text + c.Message.Reasoning + c.Message.Content
		a.StoppedAtLimit = a.StoppedAtLimit || c.FinishReason == "length"
		if c.Logprobs != nil {
			entries = append(entries, c.Logprobs.Content...)
		}
	}
	if len(body.Choices) > 0 {
		a.TokensPredicted, a.TokensEvaluated = body.Usage.Completion, body.Usage.Prompt
	}
	for _, e := range entries {
		if e.Logprob == nil {
			continue // an entry without the field observed nothing
		}
		a.Tokens = append(a.Tokens, e.token())
	}
	return a
}

func (e rawToken) token() Token {
	t := Token{ID: e.ID, Text: e.Token, Logprob: finite(e.Logprob)}
	for _, b := range e.Bytes {
		t.Bytes = append(t.Bytes, byte(b))
	}
	for _, other := range e.Top {
		if other.Logprob != nil && finite(other.Logprob) == nil {
			t.NullAlternatives++
		}
	}
	return t
}

// finite reads a JSON number; null and a number beyond float64 give nil.
func finite(raw json.RawMessage) *float64 {
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

var (
	contentKey = lazyregexp.New(`"(?:content|text)"\s*:\s*"`)
	bareNumber = lazyregexp.New(`(?i)[:,\[]\s*[-+]?(?:nan|inf|infinity)\s*[,}\]]`)
)

// rawContent finds where the bytes of the content's JSON string stand. Inside
// another string the quotes of the key would be escaped, so the first match is
// the key.
func rawContent(raw []byte) (from, to int) {
	at := contentKey().FindIndex(raw)
	if at == nil {
		return 0, 0
	}
	if end := stringEnd(raw[at[1]:]); end >= 0 {
		return at[1], at[1] + end
	}
	return 0, 0
}

// stringEnd finds the unescaped quote that ends a JSON string, or -1.
func stringEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// withoutStrings blanks every JSON string, so that what is left is structure,
// numbers and bare words.
func withoutStrings(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			out = append(out, raw[i])
			continue
		}
		end := stringEnd(raw[i+1:])
		if end < 0 {
			break
		}
		out = append(out, '"', '"')
		i += end + 1
	}
	return out
}

// cutRune tells how many bytes at the end of b begin a UTF-8 sequence that is
// not finished: legal where generation stopped at its limit.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		c := b[len(b)-n]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= 0xC2 && c <= 0xF4 && !utf8.FullRune(b[len(b)-n:]) {
			return n
		}
		return 0
	}
	return 0
}
