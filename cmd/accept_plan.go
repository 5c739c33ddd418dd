package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/ui"
)

type acceptPlanOptions struct {
	write  string
	load   time.Duration
	tokens float64
}

func newAcceptPlanCommand(a *app) *cobra.Command {
	var opts acceptPlanOptions
	c := &cobra.Command{
		Use:   "plan [PLAN]",
		Short: "Say what a plan will do, how long it takes, and what it can and cannot show",
		Long: `Check a plan and say, before anything is run, what it will do and how long it takes, which
bounds it gives if there is no fault, what it can show and what it cannot, and its hash.

PLAN is a file or the name of a plan that comes with this program; without one these are
listed. --write FILE writes a copy of one to change: set its model, and what else its first
lines say. How fast the host is is assumed from the size of the model, unless --load-time
and --tokens-per-second tell it.`,
		Args: between(0, 1), ValidArgsFunction: completePlans,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAcceptPlan(args, opts) },
	}
	f := c.Flags()
	f.StringVar(&opts.write, "write", "", "write a copy of the plan to this file, which must not be there")
	f.Var((*span)(&opts.load), "load-time", "time from a server's start until its model has loaded, if it is known")
	f.Float64Var(&opts.tokens, "tokens-per-second", 0, "tokens that all slots together generate a second, if it is known")
	return c
}

func (a *app) runAcceptPlan(args []string, opts acceptPlanOptions) error {
	if len(args) == 0 && opts.write != "" {
		return usagef("--write %s: name the plan to copy, such as 1bit accept plan default --write %[1]s", opts.write)
	}
	if len(args) == 0 {
		return a.listPlans()
	}
	if !(opts.tokens >= 0 && opts.tokens < 1e9) {
		return usagef("--tokens-per-second is a number of tokens, such as 150")
	}
	if opts.write != "" {
		return a.writePlan(args[0], opts.write)
	}
	plan, err := acceptance.OpenPlan(args[0])
	if err != nil {
		return err
	}
	e := plan.Estimate(acceptance.EstimateInput{
		LoadTime: opts.load, TokensPerSecond: opts.tokens, ModelBytes: plan.ModelBytes(a.environ),
	})
	return a.show(e, func(w io.Writer) error { return printEstimate(w, e) })
}

// writePlan copies a plan that comes with the program, or another, to where nothing is yet.
func (a *app) writePlan(name, path string) error {
	raw, err := acceptance.ReadyPlan(name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: it is there already: name another file", path)
	}
	if err := atomicfile.Write(path, raw, 0o644); err != nil {
		return err
	}
	return a.show(map[string]string{"plan": name, "path": path}, say("%s", path))
}

type readyPlan struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// listPlans lists the plans that come with the program, with their first sentence.
func (a *app) listPlans() error {
	var plans []readyPlan
	for _, name := range acceptance.ReadyPlans() {
		raw, err := acceptance.ReadyPlan(name)
		if err != nil {
			return err
		}
		plans = append(plans, readyPlan{name, firstSentence(raw)})
	}
	return a.show(map[string]any{"plans": plans}, func(w io.Writer) error {
		rows := [][]string{{"PLAN", "WHAT IT IS"}}
		for _, p := range plans {
			rows = append(rows, []string{p.Name, p.About})
		}
		return ui.Table(w, rows)
	})
}

// firstSentence is that of the comment that a plan begins with, up to its colon or stop.
func firstSentence(raw []byte) string {
	var words []string
	for line := range bytes.Lines(raw) {
		text, comment := strings.CutPrefix(string(line), "#")
		if !comment {
			break
		}
		words = append(words, strings.Fields(text)...)
	}
	for i, word := range words {
		if strings.HasSuffix(word, ".") || strings.HasSuffix(word, ":") {
			words[i] = word[:len(word)-1]
			return strings.Join(words[:i+1], " ")
		}
	}
	return strings.Join(words, " ")
}

func printEstimate(w io.Writer, e acceptance.Estimate) error {
	fmt.Fprintf(w, "plan %s, sha256:%s\n", e.Plan, e.PlanFileSHA256)
	fmt.Fprintf(w, "%s of %s, %d attempts at most, %s to %s in all\n",
		counted(e.Lives, "server life", "server lives"), counted(len(e.Arms), "arm", "arms"), e.Attempts, seconds(e.MinSeconds), seconds(e.MaxSeconds))
	for _, line := range e.Assumed {
		fmt.Fprintf(w, "  assumed: %s\n", line)
	}
	if told := strings.Join(e.Assumed, " "); strings.Count(told, "as told") < 2 {
		fmt.Fprintln(w, "  --load-time and --tokens-per-second make it narrower")
	}
	rows := [][]string{{"ARM", "ROLE", "LIVES", "LOAD OF EACH", "SLOTS", "NEIGHBOUR", "PROMPTS"}}
	for _, arm := range e.Arms {
		load := plural(arm.Requests, "request")
		if arm.LoadSeconds > 0 {
			load = seconds(arm.LoadSeconds)
		}
		rows = append(rows, []string{arm.Name, arm.Role, fmt.Sprint(arm.Lives), load, fmt.Sprint(arm.Parallel), arm.Neighbour,
			strings.Trim(fmt.Sprint(arm.PromptTokens), "[]") + " tokens"})
	}
	if err := ui.Table(w, rows); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"it can show", e.CanShow}, {"it cannot show", e.CannotShow}, {"note", e.Notes}} {
		for _, line := range part.lines {
			fmt.Fprintf(w, "%s: %s\n", part.title, line)
		}
	}
	return nil
}

// seconds is a time for people, from a tenth of a second to days.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// counted is "1 life" or "3 lives".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
