package engine

// A document is one JSON text of a reply: all of it, or one event of a stream.
// What it says is added to the answer.
type document struct {
	a       *Answer
	r       *jsonReader
	at      int    // where the text stands in the answer's Raw; -1: nowhere in one piece
	failure string // its error object
}

func (d *document) read(r *jsonReader) {
	d.r = r
	a := d.a
	r.object(func(key []byte) {
		switch string(key) {
		case "content":
			a.known = a.known || r.peek() != 'n'
			d.content()
		case "completion_probabilities":
			a.known = a.known || r.peek() != 'n'
			r.list(d.token)
		case "choices":
			a.known = a.known || r.peek() != 'n'
			r.list(d.choice)
		case "tokens":
			r.list(func() {
				if id, ok := r.int(); ok {
					a.TokenIDs = append(a.TokenIDs, id)
				}
			})
		case "id_slot":
			d.int(&a.SlotID)
		case "tokens_predicted":
			d.int(&a.TokensPredicted)
		case "tokens_evaluated":
			d.int(&a.TokensEvaluated)
		case "truncated":
			a.Truncated = r.bool() || a.Truncated
		case "stop":
			a.ended = r.bool() || a.ended
		case "stop_type":
			kind, _, _ := r.string()
			a.StoppedAtLimit = kind == "limit" || a.StoppedAtLimit
		case "stopped_limit":
			a.StoppedAtLimit = r.bool() || a.StoppedAtLimit
		case "usage":
			d.usage()
		case "error":
			d.error()
		default:
			r.skip()
		}
	})
}

func (d *document) int(to *int) {
	if n, ok := d.r.int(); ok {
		*to = n
	}
}

// content adds a piece of the text.
func (d *document) content() {
	s, from, to := d.r.string()
	if s == "" {
		return
	}
	d.a.text = append(d.a.text, s...)
	if d.at >= 0 {
		d.a.contentAt, d.a.contentTo = d.at+from, d.at+to
	}
}

func (d *document) usage() {
	d.r.object(func(key []byte) {
		switch string(key) {
		case "completion_tokens":
			d.int(&d.a.TokensPredicted)
		case "prompt_tokens":
			d.int(&d.a.TokensEvaluated)
		default:
			d.r.skip()
		}
	})
}

func (d *document) error() {
	null := d.r.peek() == 'n'
	from := d.r.i
	d.r.skip()
	if !null && d.r.err == nil {
		d.failure = bounded(d.r.b[from:d.r.i])
	}
}

// choice reads one of an OpenAI-compatible reply.
func (d *document) choice() {
	r := d.r
	r.object(func(key []byte) {
		switch string(key) {
		case "text":
			d.content()
		case "message", "delta":
			r.object(func(key []byte) {
				switch string(key) {
				case "content", "reasoning_content":
					d.content()
				default:
					r.skip()
				}
			})
		case "logprobs":
			d.logprobs()
		case "finish_reason":
			why, _, _ := r.string()
			d.a.ended = why != "" || d.a.ended
			d.a.StoppedAtLimit = why == "length" || d.a.StoppedAtLimit
		default:
			r.skip()
		}
	})
}

// logprobs reads those of a choice: a list of tokens, or in the older shape of
// /v1/completions parallel lists of their texts, log-probabilities and
// candidates.
func (d *document) logprobs() {
	r, first := d.r, len(d.a.Tokens)
	var texts []string
	var tops []candidates
	r.object(func(key []byte) {
		switch string(key) {
		case "content":
			r.list(d.token)
		case "token_logprobs":
			r.list(func() {
				if v, ok := r.number(); r.err == nil {
					d.a.Tokens = append(d.a.Tokens, Token{ID: -1, Logprob: d.finite(v, ok)})
				}
			})
		case "tokens":
			r.list(func() {
				s, _, _ := r.string()
				texts = append(texts, s)
			})
		case "top_logprobs":
			r.list(func() {
				var c candidates
				r.object(func([]byte) { c.add(r.number()) })
				tops = append(tops, c)
			})
		default:
			r.skip()
		}
	})
	for i := range d.a.Tokens[first:] {
		t := &d.a.Tokens[first+i]
		if i < len(texts) {
			t.Text = texts[i]
		}
		if i < len(tops) {
			d.judge(t, tops[i])
		}
	}
}

// token reads an entry of completion_probabilities or of logprobs.content. A
// missing log-probability tells nothing, so that such an entry is left out; a
// null one tells NaN.
func (d *document) token() {
	r := d.r
	t := Token{ID: -1}
	told := false
	var top candidates
	r.object(func(key []byte) {
		switch string(key) {
		case "id":
			d.int(&t.ID)
		case "token":
			t.Text, _, _ = r.string()
		case "bytes":
			r.list(func() {
				n, _ := r.int()
				t.Bytes = append(t.Bytes, byte(n))
			})
		case "logprob":
			told = true
			t.Logprob = d.finite(r.number())
		case "top_logprobs":
			r.list(func() {
				r.object(func(key []byte) {
					if string(key) == "logprob" {
						top.add(r.number())
						return
					}
					r.skip()
				})
			})
		default:
			r.skip()
		}
	})
	if !told || r.err != nil {
		return
	}
	d.judge(&t, top)
	if d.a.Tokens == nil {
		d.a.Tokens = make([]Token, 0, len(r.b)/120) // what one takes at least
	}
	d.a.Tokens = append(d.a.Tokens, t)
}

func (d *document) judge(t *Token, top candidates) {
	t.NullAlternatives = top.null
	if top.finite >= 2 {
		t.TopGap = d.keep(top.first - top.second)
	}
}

// finite gives a log-probability, nil for one that is none.
func (d *document) finite(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return d.keep(v)
}

// keep stores a number with many others, since a reply has hundreds.
func (d *document) keep(v float64) *float64 {
	a := d.a
	if len(a.values) == cap(a.values) {
		a.values = make([]float64, 0, min(max(4, 2*cap(a.values)), 256))
	}
	a.values = append(a.values, v)
	return &a.values[len(a.values)-1]
}

// candidates are the tokens that one step chose from.
type candidates struct {
	null, finite  int
	first, second float64 // the two largest log-probabilities
}

func (c *candidates) add(v float64, ok bool) {
	switch {
	case !ok:
		c.null++
		return
	case c.finite == 0 || v > c.first:
		c.first, c.second = v, c.first
	case c.finite == 1 || v > c.second:
		c.second = v
	}
	c.finite++
}

// bounded keeps of a server's message what fits a record.
func bounded(message []byte) string { return string(message[:min(len(message), 4<<10)]) }
