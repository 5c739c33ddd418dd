package detect

import "net/http"

// A Request is what a ledger tells of one request, as far as it decides which faces could have shown on it.
type Request struct {
	Outcome    string // Answered, Deadline, NoAnswer or Censored
	Kind       string // Sentinel, or "" for one with a prompt of its own
	Status     int    // of the answer
	ProbsAsked bool
	Predicted  int  // tokens
	Observed   int  // tokens with a log-probability, also one that is not finite
	Short      bool // its text is known to be too short for any nonce
}

// Outcomes of a request.
const (
	Answered = "answered"
	Deadline = "deadline"  // nothing within its deadline
	NoAnswer = "no-answer" // the connection failed
	Censored = "censored"  // the runner gave up first
)

// Sentinel is the kind of a request whose answer is known.
const Sentinel = "sentinel"

// Window is how many characters of a nonce in a row an answer must have for a leak to be seen.
const Window = window

// Each of these says which requests can show a face.

func ended(r Request) bool { return r.Outcome != Censored }

func answered(r Request) bool { return r.Outcome == Answered }

func answered200(r Request) bool { return answered(r) && r.Status == http.StatusOK }

func withTokens(r Request) bool { return answered200(r) && r.Predicted > 0 }

func withProbs(r Request) bool { return answered200(r) && MostObserved(r.Predicted, r.Observed) }

// MostObserved tells whether an answer came with the log-probabilities of most of its tokens. Of one that did not, most was
// not seen.
func MostObserved(predicted, observed int) bool { return observed > 0 && 2*observed >= predicted }

func withWords(r Request) bool { return withTokens(r) && !r.Short }

func asked(r Request) bool { return withTokens(r) && r.ProbsAsked }

func compared(r Request) bool { return withTokens(r) && r.Kind == Sentinel }
