package incident

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/ui"
)

// yaml writes the plan, with the reason of each choice.
func (p *shaped) yaml(r *Report) []byte {
	w := &planWriter{}
	w.about(0, p.story(r))
	w.about(0, `What it can show, and for how long it runs, says "1bit accept plan FILE".`)
	for _, note := range p.notes {
		w.about(0, "Note: "+note+".")
	}
	w.line("")
	w.line("name: %s", p.name)
	w.line("model: %s", quoted(p.model))
	w.line("")
	w.line("server:")
	if p.entry != "" {
		w.value("  entry: "+quoted(p.entry), "what the service starts; it starts the server")
	}
	w.value("  parallel: "+fmt.Sprint(p.parallel), cmp.Or(p.told["parallel"], "slots, as the incident's"))
	w.value("  kv_unified: "+fmt.Sprint(p.unified), "whether they share one memory, as they did")
	w.value("  ctx: "+fmt.Sprint(p.ctx), cmp.Or(p.told["ctx"], "tokens of all slots together"))
	if len(p.flags) > 0 {
		w.value("  flags: "+list(p.flags), "the service's own, but for what the runner sets")
	}
	w.line("  env:")
	w.value(`    GGML_HRX_NAN_CONTINUE: "1"`, "the guard reports a NaN with its index range and goes on, where a service would end")
	for _, key := range slices.Sorted(maps.Keys(p.env)) {
		if key != "GGML_HRX_NAN_CONTINUE" {
			w.line("    %s: %s", quoted(key), quoted(p.env[key]))
		}
	}
	w.line("")
	w.line("load:")
	w.value("  requests: "+fmt.Sprint(p.requests), p.whyRequests(r))
	w.value("  in_flight: "+fmt.Sprint(p.parallel), "every slot busy: one request at a time would prove nothing")
	w.value("  prompts: unique", "none is put on a slot for its beginning: all are put on the least recently used one, or one never used")
	w.value("  prompt_tokens: "+list(p.prompts), cmp.Or(p.told["prompt_tokens"], "lengths that the log of the incident tells"))
	w.value("  n_predict: "+list(p.predict), cmp.Or(p.told["n_predict"], "tokens generated, from the same log"))
	w.line("")
	w.about(0, "No sentinels: they are asked on the quiet server before the load, and would be the first tasks of the slots.")
	w.line("")
	p.writeNeighbour(w, r)
	w.line("arms:")
	w.value(fmt.Sprintf("  - {name: fresh, lives: %d}", freshLives),
		fmt.Sprintf("%d first tasks on slots that were never used", freshLives*p.parallel))
	switch life := "one life as long"; {
	case p.long > 0:
		if p.long.Seconds() < p.uptime {
			life = "one life, not as long"
		}
		w.value(fmt.Sprintf("  - {name: long, role: control, duration: %s}", hours(p.long)),
			fmt.Sprintf("the incident came after %s: %s; a fault in it fails the plan, and as one life it says little of other lives", uptimeText(p.uptime), life))
	case p.uptime > 0:
		w.about(2, fmt.Sprintf("No long life: the incident came after %s.", uptimeText(p.uptime)))
	default:
		w.about(2, "No long life: the incident does not tell after how long it came.")
	}
	w.line("")
	w.line("gates:")
	w.value(fmt.Sprintf("  min_launches_per_slot: %d", max(1, p.requests/p.parallel/2)), "a life in which a slot had less to do is made again")
	w.line("  all_slots_busy_share: 0.5")
	if p.neighbour != "none" {
		w.value("  neighbour_work: 1", "a life whose neighbour did nothing is made again")
	}
	w.about(2, memoryThen(r))
	w.line("")
	if p.device != "" {
		w.value(fmt.Sprintf("device: {name: %s}", quoted(p.device)), "the incident's: a model that lands elsewhere proves nothing about it")
	}
	if p.watchdog > 0 {
		w.value(fmt.Sprintf("watchdogs: {mem_available_gib: %g}", p.watchdog), "a life is ended before the kernel ends something else")
	}
	w.line("")
	w.line("primary: arm")
	w.value(fmt.Sprintf("p0: %g", freshP0), "needs 59 lives without a fault")
	w.line("confidence: 0.95")
	w.value(fmt.Sprintf("attempts: %d", freshAttempts+1), "most lives, those that are made again for an outside cause included")
	w.value("after_fault: stop", "one fault answers the question")
	return []byte(w.String())
}

// story says of what the plan is one.
func (p *shaped) story(r *Report) string {
	text := "Made of an incident of " + r.Unit
	if r.Ending != nil {
		text += ", which went wrong at " + r.Ending.At.UTC().Format(time.RFC3339)
		if r.Ending.Cause != "" {
			text += " (" + r.Ending.Cause + ")"
		}
	}
	if r.Evidence != nil && r.Evidence.Package != nil && r.Evidence.Package.Name != "" {
		text += " on the package " + r.Evidence.Package.Name
	}
	text += "."
	if r.Signature != "" {
		text += " Its kind: " + r.Signature + "."
	}
	return text + " The servers have its shape; the question is whether a package does it too."
}

func (p *shaped) whyRequests(r *Report) string {
	switch before := r.Shape.TasksBefore; {
	case p.long > 0:
		return "of a short life; the long one has as many as its time allows"
	case before > 0 && p.requests >= before+p.parallel:
		return fmt.Sprintf("of a short life: it comes past the incident's, of which the log has %s", tasks(before))
	}
	return "of a short life"
}

func (p *shaped) writeNeighbour(w *planWriter, r *Report) {
	why := strings.TrimSuffix(strings.TrimSpace(r.Shape.Why), ".")
	if p.neighbour == "none" {
		w.about(0, "No neighbour: "+cmp.Or(why, "the incident tells of no other job on the device")+". To try one: neighbour: {kind: bench}")
		w.line("")
		return
	}
	w.line("neighbour:")
	w.value("  kind: "+p.neighbour, cmp.Or(why, "the other job on the device"))
	if p.neighbour != "ops" {
		w.about(2, "Its model is the plan's own: for less memory set another here, as model: ~/models/small.gguf")
	}
	if p.device != "" {
		args := map[string][]string{
			"bench":  {"-dev", p.device, "-ngl", "99", "-p", "512", "-n", "128", "-r", "5"},
			"server": {"--device", p.device, "-ngl", "99"},
			"ops":    {"-b", p.device},
		}[p.neighbour]
		w.line("  args: %s", list(args))
	}
	w.value("  lead: 5m", "most time to wait for its first work")
	w.line("")
}

// memoryThen is what is known of the memory at the incident: no gate, since it was told after the end and not before.
func memoryThen(r *Report) string {
	if r.Restart == nil || r.Restart.Host == nil {
		return ""
	}
	h, text := r.Restart.Host, ""
	if h.GTTFreeGiB != nil && h.GTTTotalGiB != nil {
		text = fmt.Sprintf("GTT %.1f of %.1f GiB in use", *h.GTTTotalGiB-*h.GTTFreeGiB, *h.GTTTotalGiB)
	}
	if h.MemAvailableGiB != nil {
		text += fmt.Sprintf("%sMemAvailable %.1f GiB", strings.Repeat(", ", min(len(text), 1)), *h.MemAvailableGiB)
	}
	if text == "" {
		return ""
	}
	return "The service said when it came back: " + text + ". That is after the end, so it is no gate; one would be gtt_used_gib: {min: …, max: …}"
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}

// uptimeText is a time in seconds for people.
func uptimeText(s float64) string {
	d := time.Duration(s * float64(time.Second)).Round(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return d.String()
}

// hours is a duration as a plan has it.
func hours(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

// planWriter writes YAML with comments. Nothing that came from elsewhere can leave its quotes or its comment.
type planWriter struct{ strings.Builder }

func (w *planWriter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// planWidth is where lines of comments are broken.
const planWidth = 118

// value writes a line with its reason: behind it, or before it where both do not fit on one line.
func (w *planWriter) value(line, why string) {
	why = plainLine(why)
	if len(line)+len(why)+5 <= planWidth {
		w.line("%s   # %s", line, why)
		return
	}
	w.about(len(line)-len(strings.TrimLeft(line, " ")), why)
	w.line("%s", line)
}

// about writes a comment.
func (w *planWriter) about(indent int, text string) {
	lead := strings.Repeat(" ", indent) + "#"
	line := lead
	for _, word := range strings.Fields(plainLine(text)) {
		if len(line)+1+len(word) > planWidth && line != lead {
			w.line("%s", line)
			line = lead
		}
		line += " " + word
	}
	if line != lead {
		w.line("%s", line)
	}
}

// plainLine is a text as one line of what can be printed.
func plainLine(text string) string { return strings.Join(strings.Fields(ui.Clean(text)), " ") }

// quoted writes a text as YAML reads it back: a JSON string is one.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// list writes words or numbers as a list of YAML.
func list[T string | int](values []T) string {
	var words []string
	for _, v := range values {
		switch v := any(v).(type) {
		case string:
			words = append(words, quoted(v))
		case int:
			words = append(words, fmt.Sprint(v))
		}
	}
	return "[" + strings.Join(words, ", ") + "]"
}
