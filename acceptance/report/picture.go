package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/acceptance"
)

// A picture with its title and legend.
type picture struct {
	Title  string
	Note   string
	Legend []legend
	SVG    template.HTML
}

type legend struct{ Name, Class string }

// columns is how many points a line has at most.
const columns = 180

// pictures draws everything that people would rather look at than read.
func (r *Report) pictures() []picture {
	all := append([]picture{r.boundsPicture(), r.latencyPicture(), r.latencyHistogram(), r.facesPicture(), r.slotPicture()}, r.memoryPictures()...)
	return slices.DeleteFunc(all, func(p picture) bool { return p.SVG == "" })
}

// at gives seconds since the run began.
func (r *Report) at(t time.Time) float64 { return t.Sub(r.history.From).Seconds() }

func (r *Report) length() float64 { return max(1, r.at(r.history.To)) }

func (r *Report) bands() []point {
	var list []point
	for _, l := range r.history.Lives {
		list = append(list, point{r.at(l.From), r.at(l.To)})
	}
	if len(list) > 200 {
		return nil // stripes too narrow to see
	}
	return list
}

func (r *Report) faultMarks() []mark {
	var list []mark
	for _, f := range r.verdict.Faults {
		if len(list) == mostFaults {
			break
		}
		if !f.Gates {
			continue
		}
		list = append(list, mark{r.at(f.At), f.Face + ": " + f.Detail})
	}
	return list
}

// boundsPicture shows every bound beside the rate that the plan excludes, on a
// logarithmic axis.
func (r *Report) boundsPicture() picture {
	const row = 22.0
	var list []bound
	low, high := math.Inf(1), 1.0
	for _, b := range r.boundList() {
		if b.Value > 0 && !b.Hour {
			list = append(list, b)
			low = min(low, b.Value)
		}
	}
	if !(low < high) {
		return picture{} // nothing is excluded
	}
	p0 := r.history.P0
	if r.verdict.Primary == "hour" {
		p0 = 0 // it is no probability
	}
	if p0 > 0 {
		low = min(low, p0)
	}
	low = math.Pow(10, math.Floor(math.Log10(low)))
	const left, right = 190.0, 80.0
	x := func(v float64) float64 {
		v = min(max(v, low), high)
		return left + (math.Log(v)-math.Log(low))/(math.Log(high)-math.Log(low))*(plotWidth-left-right)
	}
	c := newCanvas("Bounds on the fault rate", row*float64(len(list))+40)
	for v := low; v <= high*1.01; v *= 10 {
		c.line(x(v), 4, x(v), c.height-24, "grid")
		c.text(x(v), c.height-8, "tick", "middle", short(v))
	}
	for i, b := range list {
		y := row*float64(i) + 18
		c.text(left-8, y+4, "label", "end", b.Name)
		c.line(x(low), y, x(b.Value), y, "stem")
		c.printf(`<circle cx="%.1f" cy="%.1f" r="4.5" class="dot"/>`, x(b.Value), y)
		c.text(x(b.Value)+9, y+4, "value", "start", rate(b.Value))
	}
	if p0 > 0 {
		c.printf(`<line x1="%.1f" y1="4" x2="%.1f" y2="%.1f" class="limit"/>`, x(p0), x(p0), c.height-24)
	}
	note := "The axis is logarithmic."
	if p0 > 0 {
		note += fmt.Sprintf(" The line is the rate that the plan wants excluded: %g per %s.", p0, r.unit())
	}
	return picture{Title: "How far the evidence reaches", Note: note, SVG: c.end()}
}

func (r *Report) latencyPicture() picture {
	// A point needs some requests to be a median of.
	n := max(1, min(columns, len(r.history.Answers)/12))
	groups := make([][]float32, n)
	for _, a := range r.history.Answers {
		i := int(float64(a.Seconds) / r.length() * float64(n))
		if i = min(max(i, 0), n-1); a.MS >= 0 {
			groups[i] = append(groups[i], a.MS)
		}
	}
	median, most := series{name: "median", class: "c1"}, series{name: "99th percentile", class: "c2"}
	for i, g := range groups {
		x := (float64(i) + 0.5) / float64(n) * r.length()
		slices.Sort(g)
		median.points = append(median.points, point{x, quantile(g, 0.5)})
		most.points = append(most.points, point{x, quantile(g, 0.99)})
	}
	p := plot{
		name: "Latency over time", height: 220, x0: 0, x1: r.length(), unit: " ms", log: true,
		lines: []series{most, median}, bands: r.bands(), marks: r.faultMarks(),
	}
	return picture{
		Title: "Latency", Note: "From the intended start of a request, by the time of its end. Shaded: every second server life. Red: a fault.",
		Legend: []legend{{"median", "c1"}, {"99th percentile", "c2"}}, SVG: p.draw(),
	}
}

func quantile(sorted []float32, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
}

// latencyHistogram counts the requests in steps of a twelfth of a decade.
func (r *Report) latencyHistogram() picture {
	const perDecade = 12
	count := map[int]int{}
	for _, a := range r.history.Answers {
		if a.MS > 0 {
			count[int(math.Floor(math.Log10(float64(a.MS))*perDecade))]++
		}
	}
	if len(count) == 0 {
		return picture{}
	}
	keys := slices.Sorted(maps.Keys(count))
	first, last := keys[0], keys[len(keys)-1]
	most := slices.Max(slices.Collect(maps.Values(count)))
	c := newCanvas("Histogram of latency", 180)
	width := (plotWidth - plotLeft - plotRight) / float64(last-first+1)
	for k := first; k <= last; k++ {
		h := float64(count[k]) / float64(most) * (c.height - plotTop - plotBottom)
		x := plotLeft + float64(k-first)*width
		from, to := math.Pow(10, float64(k)/perDecade), math.Pow(10, float64(k+1)/perDecade)
		c.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="bar"><title>%s to %s: %s requests</title></rect>`,
			x+0.5, c.height-plotBottom-h, max(0.5, min(width-1, 60)), h, milliseconds(from), milliseconds(to), thousands(count[k]))
		if width > 60 || (k-first)%max(1, int(math.Ceil(62/width))) == 0 {
			c.text(x, c.height-8, "tick", "start", milliseconds(from))
		}
	}
	c.text(plotLeft-6, plotTop+8, "tick", "end", thousands(most))
	c.line(plotLeft, c.height-plotBottom, plotWidth-plotRight, c.height-plotBottom, "grid")
	return picture{Title: "Latency, how many requests", Note: "Logarithmic steps, from the intended start.", SVG: c.end()}
}

// facesPicture puts every finding on its face's line.
func (r *Report) facesPicture() picture {
	at := map[string][]acceptance.FindingAt{}
	for _, f := range r.history.Findings {
		at[f.Face] = append(at[f.Face], f)
	}
	if len(at) == 0 {
		return picture{}
	}
	const row, left = 22.0, 120.0
	faces := slices.Sorted(maps.Keys(at))
	c := newCanvas("Faces over time", row*float64(len(faces))+34)
	for i, face := range faces {
		y := row*float64(i) + 16
		c.text(left-8, y+4, "label", "end", face)
		c.line(left, y, plotWidth-plotRight, y, "grid")
		seen := map[int]bool{} // one mark a pixel
		for _, f := range at[face] {
			x := left + r.at(f.At)/r.length()*(plotWidth-left-plotRight)
			if seen[int(x)] {
				continue
			}
			seen[int(x)] = true
			class := "dot"
			if f.Fault {
				class = "fault"
			}
			c.printf(`<circle cx="%.1f" cy="%.1f" r="4" class="%s"><title>%s</title></circle>`, x, y, class, escape(f.Detail))
		}
	}
	for i := range 5 {
		anchor := "middle"
		if i == 4 {
			anchor = "end"
		}
		c.text(left+float64(i)/4*(plotWidth-left-plotRight), c.height-6, "tick", anchor, span(r.length()*float64(i)/4))
	}
	return picture{Title: "Faces over time", Note: "Red: a fault that decides. The others are only reported.", SVG: c.end()}
}

func (r *Report) slotPicture() picture {
	launches := r.verdict.Exposure.LaunchesPerSlot
	if len(launches) == 0 {
		return picture{}
	}
	const row, left, right = 22.0, 64.0, 90.0
	slots := slices.Sorted(maps.Keys(launches))
	most := max(1, slices.Max(slices.Collect(maps.Values(launches))))
	c := newCanvas("Launches by slot", row*float64(len(slots))+10)
	for i, slot := range slots {
		y := row*float64(i) + 6
		w := float64(launches[slot]) / float64(most) * (plotWidth - left - right)
		c.text(left-8, y+13, "label", "end", fmt.Sprintf("slot %d", slot))
		c.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="16" class="bar"/>`, left, y, w)
		c.text(left+w+6, y+13, "value", "start", thousands(launches[slot]))
	}
	return picture{Title: "Launches by slot", SVG: c.end()}
}

// memoryPictures draws one picture a sensor that the host has.
func (r *Report) memoryPictures() []picture {
	var all []picture
	for _, s := range []struct {
		title, unit string
		value       func(acceptance.SampleAt) *float64
	}{
		{"Memory of the server", " MiB", func(s acceptance.SampleAt) *float64 { return s.ServerMiB }},
		{"GTT in use", " GiB", func(s acceptance.SampleAt) *float64 { return s.GTTUsedGiB }},
		{"MemAvailable of the host", " GiB", func(s acceptance.SampleAt) *float64 { return s.MemAvailableGiB }},
		{"Temperature of the GPU", " °C", func(s acceptance.SampleAt) *float64 { return s.TempC }},
	} {
		line := series{class: "c1"}
		every := max(1, len(r.history.Samples)/(2*columns))
		for i, sample := range r.history.Samples {
			if v := s.value(sample); v != nil && i%every == 0 {
				line.points = append(line.points, point{r.at(sample.At), *v})
			}
		}
		p := plot{name: s.title, height: 150, x0: 0, x1: r.length(), unit: s.unit, lines: []series{line}, bands: r.bands(), zero: s.unit == " MiB"}
		note := ""
		if s.unit == " MiB" {
			note = "Anonymous and swapped: what grows when something leaks."
		}
		all = append(all, picture{Title: s.title, Note: note, SVG: p.draw()})
	}
	return all
}
