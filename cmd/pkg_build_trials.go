package cmd

import (
	"fmt"
	"io"

	"github.com/1bit-systems/pkg/packager/build"
)

// trialDocument is what an entry point said to --version.
type trialDocument struct {
	Entry    string   `json:"entry"`
	Version  string   `json:"version"`
	Answered bool     `json:"answered"`
	Status   int      `json:"status"`
	Said     string   `json:"said"` // the first line, if it did not answer
	Commits  []string `json:"commits"`
}

func trialDocuments(trials []build.Trial) []trialDocument {
	docs := []trialDocument{}
	for _, t := range trials {
		doc := trialDocument(t)
		doc.Commits = append([]string{}, t.Commits...)
		docs = append(docs, doc)
	}
	return docs
}

// sayTrials tells people what the programs of a new package answered.
func sayTrials(w io.Writer, trials []build.Trial) {
	for _, t := range trials {
		if t.Answered {
			fmt.Fprintf(w, "%s answers: %s\n", t.Entry, t.Version)
		} else {
			fmt.Fprintf(w, "%s starts and ends with status %d: %s\n", t.Entry, t.Status, or(t.Said, "it says nothing"))
		}
	}
}
