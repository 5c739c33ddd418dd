package cmd

import (
	"fmt"
	"io"

	"github.com/1bit-systems/pkg/packager/build"
)

// trialDocument is what an entry point said to --version.
type trialDocument struct {
	Entry    string `json:"entry"`
	Version  string `json:"version"`
	Answered bool   `json:"answered"`
}

func trialDocuments(trials []build.Trial) []trialDocument {
	docs := []trialDocument{}
	for _, t := range trials {
		docs = append(docs, trialDocument(t))
	}
	return docs
}

// sayTrials tells people what the programs of a new package answered.
func sayTrials(w io.Writer, trials []build.Trial) {
	for _, t := range trials {
		if t.Answered {
			fmt.Fprintf(w, "%s answers: %s\n", t.Entry, t.Version)
		} else {
			fmt.Fprintf(w, "%s starts, and does not know --version\n", t.Entry)
		}
	}
}
