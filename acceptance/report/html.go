package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/ui"
)

//go:embed page.html
var pageText string

// page is what the template shows.
type page struct {
	Title, Verdict, Claim, Reason string
	Facts                         []fact
	Pictures                      []picture
	First, Tables                 []table // the arms stand before the pictures
	NotTested, Notes              []string
	PlanSHA256, PlanFileSHA256    string
	Made                          string
}

// A fact is one of the large figures at the top.
type fact struct{ Value, What string }

// HTML writes the page.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	v, tables := r.verdict, r.tables()
	first := min(1, len(tables))
	return t.Execute(w, page{
		Title: v.Plan + ": " + v.Verdict, Verdict: v.Verdict, Claim: r.claim(), Reason: ui.Clean(v.Reason), Facts: r.facts(),
		Pictures: r.pictures(), First: tables[:first], Tables: tables[first:], NotTested: cleaned(v.NotTested), Notes: cleaned(v.Notes),
		PlanSHA256: v.PlanSHA256, PlanFileSHA256: v.PlanFileSHA256, Made: r.when(),
	})
}

// cleaned takes what could move the rest of the text out of lines.
func cleaned(lines []string) []string {
	list := make([]string, len(lines))
	for i, s := range lines {
		list[i] = ui.Clean(s)
	}
	return list
}

// claim says in one sentence what the run shows, and no more.
func (r *Report) claim() string {
	v := r.verdict
	switch v.Verdict {
	case acceptance.Pass:
		return fmt.Sprintf("Package %s, under the load of plan %s, has at most %s faults per %s, at %.6g %% confidence.",
			v.Package, v.Plan, r.primary(), r.unit(), 100*v.Bounds.Confidence)
	case acceptance.Fail:
		return fmt.Sprintf("Package %s showed a fault under the load of plan %s.", v.Package, v.Plan)
	}
	return fmt.Sprintf("The run of plan %s says nothing final about package %s.", v.Plan, v.Package)
}

func (r *Report) facts() []fact {
	v := r.verdict
	counted := v.Arms.Clean + v.Arms.Fault
	facts := []fact{
		{thousands(v.Requests), "requests"},
		{fmt.Sprint(r.deciding()), "faults that decide"},
		{thousands(counted), "server lives that count"},
		{r.primary(), "faults per " + r.unit() + " at most" + r.wanted()},
	}
	return append(facts, fact{percent(v.Exposure.AllSlotsBusyShare), "of the busy time all slots busy"}, fact{seconds(v.Exposure.LoadSeconds), "under load"})
}

// primary writes the bound that decides, in its own unit.
func (r *Report) primary() string {
	if r.verdict.Primary == acceptance.PrimaryHour {
		return perHour(r.verdict.Bounds.PrimaryUpper)
	}
	return rate(r.verdict.Bounds.PrimaryUpper)
}

// unit is what p0 is a rate of, in words.
func (r *Report) unit() string {
	if r.verdict.Primary == acceptance.PrimaryArm {
		return "server life"
	}
	return r.verdict.Primary
}

// deciding counts the faults that do not only stand in the report.
func (r *Report) deciding() int {
	n := 0
	for _, f := range r.verdict.Faults {
		if f.Gates {
			n++
		}
	}
	return n
}

func (r *Report) wanted() string {
	if !(r.history.P0 > 0) {
		return ""
	}
	return fmt.Sprintf("; the plan asks for %g", r.history.P0)
}

func (r *Report) when() string {
	if r.history.From.IsZero() {
		return ""
	}
	return clock(r.history.From) + " to " + clock(r.history.To) + " (" + r.history.To.Sub(r.history.From).Round(time.Second).String() + ")"
}
