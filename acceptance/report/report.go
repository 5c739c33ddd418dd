package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// Names of the reports in an evidence folder.
const (
	HTMLName     = "report.html"
	MarkdownName = "report.md"
)

// A Report is a run as it is shown.
type Report struct {
	verdict *acceptance.Verdict
	history *acceptance.History
}

// Read judges the run in an evidence folder and reads what happened in it. The
// error is for a folder without a readable run.
func Read(dir string) (*Report, error) {
	v, err := acceptance.JudgeDir(dir)
	if err != nil {
		return nil, err
	}
	h, err := acceptance.ReadHistory(dir)
	if err != nil {
		return nil, err
	}
	return &Report{verdict: v, history: h}, nil
}

// WriteFiles puts both reports into an evidence folder and returns the paths of
// the HTML and the Markdown file. The evidence itself is not changed.
func WriteFiles(dir string) (html, markdown string, err error) {
	r, err := Read(dir)
	if err != nil {
		return "", "", err
	}
	for _, f := range []struct {
		path  *string
		name  string
		write func(io.Writer) error
	}{{&html, HTMLName, r.HTML}, {&markdown, MarkdownName, r.Markdown}} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return "", "", fmt.Errorf("write %s: %w", f.name, err)
		}
		*f.path = filepath.Join(dir, f.name)
		if err := atomicfile.Write(*f.path, b.Bytes(), 0o644); err != nil {
			return "", "", err
		}
	}
	return html, markdown, nil
}
