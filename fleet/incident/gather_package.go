package incident

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/packager/version"
	"github.com/1bit-systems/pkg/systemd"
)

// How it is known which package a service ran from, the surest first.
const (
	HowLive    = "live"    // a process of the run that ended, or of the one that goes on, is still there
	HowLog     = "log"     // a program of the run wrote to the log, or dumped core, from there
	HowHistory = "history" // the last switch before the run began
	HowArmed   = "armed"   // what the next start uses: nothing tells of a switch since
)

// packages finds the package that the service ran from, and those that are newer.
func (g *gatherer) packages(ctx context.Context) {
	var all []*store.Package
	if g.o.Packages != nil {
		var err error
		if all, err = g.o.Packages(ctx); err != nil {
			g.miss("installed packages: %v", err)
		}
	}
	name, path, how := g.ranFrom(ctx, all)
	if how == "" {
		g.miss("the package: nothing tells what the service ran from")
		return
	}
	g.e.How = how
	ours := find(all, name, path)
	if ours == nil && how == HowArmed && g.service != nil {
		ours = g.service.Package
	}
	if ours == nil {
		g.e.Package = &Package{Name: name, Path: path}
		g.miss("the package %s is no longer installed: its pins and fixes are not known", name)
		return
	}
	p := packageOf(ours)
	g.e.Package = &p
	if b, err := ours.Manifest.Encode(); err == nil {
		g.e.Manifest = b
	}
	g.e.Newer = newer(ours, all)
	if how == HowArmed {
		g.doubtArmed()
	}
	if began := cmpTime(g.end.latest.started, g.end.latest.ended); !began.IsZero() && ours.InstalledAt.After(began) {
		g.miss("the package that the service ran from: what is %s now was installed at %s, after the run had begun at %s, so pins, fixes and digest may be those of another build", name, utc(ours.InstalledAt), utc(began))
	}
}

// ranFrom names the package and how that is known, "" if it is not.
func (g *gatherer) ranFrom(ctx context.Context, all []*store.Package) (name, path, how string) {
	if name, path := g.liveThen(); name != "" {
		return name, path, HowLive
	}
	if name, path := inLog(g.run(), all); name != "" {
		return name, path, HowLog
	}
	if name := g.history(ctx); name != "" {
		return name, "", HowHistory
	}
	if g.service != nil && g.service.Armed != nil {
		return g.service.Armed.Package, g.service.Armed.Path, HowArmed
	}
	return "", "", ""
}

// liveThen is what a process runs from that was there at the end: the main one outlives its server's death. Without an
// end it is what runs.
func (g *gatherer) liveThen() (name, path string) {
	if g.service == nil || g.service.Live == nil {
		return "", ""
	}
	l := g.service.Live
	if c := l.Child; c != nil && c.Package != "" && g.there(c.Since) {
		return c.Package, c.Path
	}
	if m := l.Main; m != nil && m.Package != "" && g.there(m.Since) {
		return m.Package, m.Path
	}
	return "", ""
}

// there tells whether a process that began at a time was there when the service ended.
func (g *gatherer) there(since time.Time) bool {
	return g.end.last.IsZero() || !since.IsZero() && since.Before(g.end.latest.ended)
}

// run is the log of the run that ended.
func (g *gatherer) run() []systemd.Entry {
	var entries []systemd.Entry
	for _, e := range g.e.Entries {
		after := !g.end.last.IsZero() && e.At.After(g.end.last)
		of := g.end.latest
		other := of.invocation != "" && e.Invocation != "" && e.Invocation != of.invocation
		if before := !of.started.After(of.ended) && e.At.Before(of.started.Add(-time.Second)); !after && !other && !before {
			entries = append(entries, e)
		}
	}
	return entries
}

// A path into a package, as a log may name it.
var rePackage = lazyregexp.New(`(/[^\s"'()\[\]:=,;]*/` + packager.DirPrefix + `[A-Za-z0-9][A-Za-z0-9._+-]*)/`)

// inLog finds the package that a program of a run lies in: by its path as journald or the core dump's collector saw it,
// else by a path that it wrote itself, as in a backtrace. The last word counts.
func inLog(entries []systemd.Entry, all []*store.Package) (name, path string) {
	for _, e := range slices.Backward(entries) {
		for _, field := range []string{"COREDUMP_EXE", "_EXE"} {
			if name, path := packageAt(e.Fields[field]+"/", all); name != "" {
				return name, path
			}
		}
	}
	for _, e := range slices.Backward(entries) { // free text, too, may name a package: one that is not here is not believed
		if name, path := packageAt(e.Message, all); name != "" && find(all, "", path) != nil {
			return name, path
		}
	}
	return "", ""
}

// packageAt finds the package that a text names a file of.
func packageAt(text string, all []*store.Package) (name, path string) {
	m := rePackage().FindStringSubmatch(text)
	if m == nil {
		return "", ""
	}
	if p := find(all, "", m[1]); p != nil {
		return p.Name, p.Path
	}
	name = strings.TrimPrefix(filepath.Base(m[1]), packager.DirPrefix)
	if !strings.Contains(name, "-") {
		return "", "" // none of ours: <flavour>-<id>
	}
	return name, m[1]
}

// history is the package that the last act before the start of the run armed.
func (g *gatherer) history(ctx context.Context) string {
	began := cmpTime(g.end.latest.started, g.end.latest.ended)
	if began.IsZero() {
		return ""
	}
	records, err := g.o.Host.History(ctx, g.e.Unit)
	if err != nil {
		if g.unknown == nil {
			g.miss("the history of switches: %v", err)
		}
		return ""
	}
	name := ""
	for i, r := range records {
		if i == 0 {
			name = r.From
		}
		if r.At.After(began) {
			break
		}
		name = r.To
	}
	return name
}

// doubtArmed says where a file of the unit is younger than the run.
func (g *gatherer) doubtArmed() {
	began := g.end.latest.started
	if began.IsZero() {
		return
	}
	for _, f := range g.e.Files {
		if info, err := os.Stat(f.Path); err == nil && info.ModTime().After(began) {
			g.miss("the package is what the next start uses, and %s was changed at %s, after the run that ended had begun: that may have had another", f.Path, utc(info.ModTime()))
		}
	}
}

// find finds a package by its folder, or by its name where that is not given.
func find(all []*store.Package, name, path string) *store.Package {
	for _, p := range all {
		if path != "" && p.Path == filepath.Clean(path) || path == "" && p.Name == name {
			return p
		}
	}
	if path != "" { // over a link
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			return find(all, name, real)
		}
	}
	return nil
}

func packageOf(p *store.Package) Package {
	out := Package{
		Name: p.Name, ID: p.Manifest.ID, Version: p.Manifest.Version, Digest: p.Digest, Path: p.Path, Pins: p.Manifest.Pins(),
		InstalledAt: p.InstalledAt,
	}
	for _, f := range p.Manifest.Fixes {
		switch {
		case f.Carried == nil:
			out.Unknown = append(out.Unknown, f.ID)
		case *f.Carried:
			out.Carried = append(out.Carried, f.ID)
		default:
			out.Missing = append(out.Missing, f.ID)
		}
	}
	return out
}

// newer lists the installed packages of the same flavour that are newer, the newest first: by version where both have
// one, else by when they were installed.
func newer(ours *store.Package, all []*store.Package) []Package {
	var list []*store.Package
	for _, p := range all {
		if p.Manifest.Flavour == ours.Manifest.Flavour && p.Digest != ours.Digest && p.State != store.StateBroken && age(ours, p) < 0 {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b *store.Package) int { return age(b, a) })
	have := packageOf(ours).Carried
	var out []Package
	for _, p := range list {
		n := packageOf(p)
		for _, fix := range n.Carried {
			if !slices.Contains(have, fix) {
				n.Gained = append(n.Gained, fix)
			}
		}
		out = append(out, n)
	}
	return out
}

// age compares packages, the older first.
func age(a, b *store.Package) int {
	if ta, err := version.Parse(cmp.Or(a.Manifest.Tag, a.Manifest.Version)); err == nil {
		if tb, err := version.Parse(cmp.Or(b.Manifest.Tag, b.Manifest.Version)); err == nil {
			if order, err := version.Compare(ta, tb); err == nil && order != 0 {
				return order
			}
		}
	}
	return a.InstalledAt.Compare(b.InstalledAt)
}
