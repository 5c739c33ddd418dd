package cmd

import (
	"slices"

	"github.com/1bit-systems/pkg/packager"
)

// fixDocument is a fix as JSON shows it. Carried is null where it is unknown.
type fixDocument struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	Component string   `json:"component"`
	Commit    string   `json:"commit"` // the last of the commits
	Commits   []string `json:"commits"`
	Carried   *bool    `json:"carried"`
	How       string   `json:"how"`
	Off       string   `json:"off"`
}

func fixDocuments(fixes []packager.Fix) []fixDocument {
	docs := []fixDocument{}
	for _, f := range fixes {
		docs = append(docs, fixDocument{
			ID: f.ID, Title: f.Title, Component: f.Component, Commit: f.Commits[len(f.Commits)-1], Commits: slices.Clone(f.Commits),
			Carried: f.Carried, How: f.How, Off: f.Off,
		})
	}
	return docs
}

// carriedWord is the answer for people.
func carriedWord(carried *bool) string {
	switch {
	case carried == nil:
		return "unknown"
	case *carried:
		return "yes"
	}
	return "NO"
}
