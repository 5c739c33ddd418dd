package cmd

import (
	"encoding/json"
	"fmt"
	"io"
)

// show prints the document in the chosen format: as one JSON object, or by what human writes.
func (a *app) show(document any, human func(w io.Writer) error) error {
	if !a.json() {
		return human(a.stdout)
	}
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// say is the human form of a command that changed something: one sentence about what is now true.
func say(format string, args ...any) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	}
}

// plural is "1 file" or "3 files".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
