package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
)

// The pictures are SVG with the page's own colours: classes, no attributes of
// colour, so that light and dark are the style sheet's matter. Each is drawn in
// a box of plotWidth units and grows with the page.
const (
	plotWidth  = 720.0
	plotLeft   = 64.0
	plotRight  = 12.0
	plotTop    = 10.0
	plotBottom = 26.0
)

// A point of a line; y NaN is a gap.
type point struct{ x, y float64 }

type series struct {
	name   string
	class  string // c1, c2 … of the style sheet
	points []point
}

// A plot is a picture of lines over time.
type plot struct {
	name   string // for readers who do not see it
	height float64
	x0, x1 float64 // seconds
	unit   string
	log    bool
	lines  []series
	bands  []point // x from, y to: every second life is shaded
	marks  []mark
	zero   bool // the axis begins at 0
}

// A mark is a moment on the time axis.
type mark struct {
	x    float64
	text string
}

// canvas draws one picture.
type canvas struct {
	b             strings.Builder
	width, height float64
}

func newCanvas(name string, height float64) *canvas {
	c := &canvas{width: plotWidth, height: height}
	c.printf(`<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, height, escape(name))
	return c
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

func (c *canvas) text(x, y float64, class, anchor, s string) {
	c.printf(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escape(s))
}

func (c *canvas) line(x0, y0, x1, y1 float64, class string) {
	c.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x0, y0, x1, y1, class)
}

func (c *canvas) end() template.HTML {
	c.b.WriteString("</svg>")
	return template.HTML(c.b.String()) // every text in it went through escape
}

// escape makes text of a picture out of what may come from a server.
func escape(s string) string { return html.EscapeString(ui.Clean(s)) }

// draw makes the picture; "" if there is nothing to draw.
func (p plot) draw() template.HTML {
	low, high := p.limits()
	if !(high > low) || !(p.x1 > p.x0) {
		return ""
	}
	c := newCanvas(p.name, p.height)
	x := func(v float64) float64 {
		return plotLeft + (v-p.x0)/(p.x1-p.x0)*(plotWidth-plotLeft-plotRight)
	}
	y := func(v float64) float64 {
		if p.log {
			v = math.Log(max(v, low))
			return p.height - plotBottom - (v-math.Log(low))/(math.Log(high)-math.Log(low))*(p.height-plotTop-plotBottom)
		}
		return p.height - plotBottom - (v-low)/(high-low)*(p.height-plotTop-plotBottom)
	}
	for i, b := range p.bands {
		if i%2 == 1 {
			c.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="band"/>`, x(b.x), plotTop, max(0, x(b.y)-x(b.x)), p.height-plotTop-plotBottom)
		}
	}
	for _, v := range ticks(low, high, p.log) {
		c.line(plotLeft, y(v), plotWidth-plotRight, y(v), "grid")
		c.text(plotLeft-6, y(v)+4, "tick", "end", short(v)+p.unit)
	}
	for i := range 5 {
		v := p.x0 + (p.x1-p.x0)*float64(i)/4
		anchor := "middle"
		if i == 4 {
			anchor = "end"
		}
		c.text(x(v), p.height-8, "tick", anchor, span(v))
	}
	for _, s := range p.lines {
		c.printf(`<path d="%s" class="line %s"/>`, path(s.points, x, y), s.class)
	}
	for _, m := range p.marks {
		c.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="fault"><title>%s</title></line>`,
			x(m.x), plotTop, x(m.x), p.height-plotBottom, escape(m.text))
	}
	return c.end()
}

func (p plot) limits() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range p.lines {
		for _, pt := range s.points {
			if !math.IsNaN(pt.y) && (!p.log || pt.y > 0) {
				low, high = min(low, pt.y), max(high, pt.y)
			}
		}
	}
	switch {
	case math.IsInf(low, 1):
		return 0, 0
	case p.log:
		low, high = low/1.2, high*1.2
	case p.zero:
		low, high = 0, high*1.08
	default:
		pad := max((high-low)*0.1, math.Abs(high)*0.01)
		low, high = low-pad, high+pad
	}
	if !(high > low) {
		high = low + 1
	}
	return low, high
}

// path joins the points; a gap lifts the pen, and a lone point is a dot.
func path(points []point, x, y func(float64) float64) string {
	var b strings.Builder
	down := false
	for i, p := range points {
		if math.IsNaN(p.y) {
			down = false
			continue
		}
		if down {
			fmt.Fprintf(&b, "L%.1f %.1f", x(p.x), y(p.y))
			continue
		}
		fmt.Fprintf(&b, "M%.1f %.1f", x(p.x), y(p.y))
		if i+1 == len(points) || math.IsNaN(points[i+1].y) {
			b.WriteString("h.1")
		}
		down = true
	}
	return b.String()
}

// ticks gives three to six round values between two limits.
func ticks(low, high float64, logarithmic bool) []float64 {
	var list []float64
	if logarithmic {
		for _, step := range []float64{1, 2, 5} {
			for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
				if v := step * math.Pow(10, e); v >= low && v <= high && (step == 1 || high/low < 50) {
					list = append(list, v)
				}
			}
		}
		return list
	}
	raw := (high - low) / 4
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if step*m >= raw {
			step *= m
			break
		}
	}
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		list = append(list, v)
	}
	return list
}

// short writes a number of an axis.
func short(v float64) string {
	if a := math.Abs(v); a >= 1000 {
		return thousands(int(math.Round(v)))
	} else if a < 1e-9 {
		return "0"
	}
	return fmt.Sprintf("%.4g", v)
}

// span writes seconds since the beginning of the load.
func span(s float64) string {
	n := int(math.Round(s))
	switch {
	case n >= 3600:
		return fmt.Sprintf("%d:%02d h", n/3600, n/60%60)
	case n >= 60:
		return fmt.Sprintf("%d:%02d min", n/60, n%60)
	}
	return fmt.Sprintf("%d s", n)
}
