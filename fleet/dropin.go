package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

const (
	dropInName = "zz-1bit.conf"      // what systemd reads
	prevName   = "zz-1bit.conf.prev" // what a rollback would put there; after one, what it put away
	section    = "X-1bit"
	// newerKey begins every key of our section that a version after this one adds: such a line is kept as it is. Any
	// other is somebody's, who took the end of the file for [Service].
	newerKey = "X-"
)

// The comments at the top of every file of ours.
const (
	header1 = "# Written by 1bit: "
	header2 = "# Do not edit: `1bit pkg switch` and `1bit pkg rollback` replace it. Own settings belong in a file"
	header3 = "# of their own in this folder, with a name that sorts before this one."
)

// How a rollback undoes the drop-in that says so.
const (
	rollbackExchange = "exchange" // swap it with zz-1bit.conf.prev
	rollbackRemove   = "remove"   // put it away: before it there was no file of ours
)

// PackageRef names a package as far as a unit's files know it. Digest is empty for a directory that was never
// installed or imported.
type PackageRef struct{ Name, Digest, Path string }

func (p PackageRef) isZero() bool { return p == PackageRef{} }

// same tells whether both are one package. Names decide where a digest is not known: the store holds a name
// only once.
func (p PackageRef) same(q PackageRef) bool {
	return p.Name == q.Name && (p.Digest == q.Digest || p.Digest == "" || q.Digest == "")
}

// Block is a package that a service must not be switched to, and why.
type Block struct{ Name, Digest, Reason string }

// Assignment is one variable of a drop-in.
type Assignment struct{ Key, Value string }

// DropIn is our file of one unit, the active one or its .prev.
type DropIn struct {
	Unit           string
	Environment    []Assignment
	Package        PackageRef
	Act            string // actSwitch, actRollback, actReturn, actUndo, actAdopt
	Generation     int    // grows with every switch; an active file and its .prev carry the same
	By             string
	At             time.Time
	ServedBefore   PackageRef // the last package seen serving before this one
	RolledBackFrom PackageRef // set in a file that a rollback or a return puts there
	Rollback       string     // rollbackExchange or rollbackRemove
	Blocks         []Block
	Lifted         bool // in a .prev without an active file: its package is not blocked any more

	// Start is what adopt made of the unit's ExecStart=: the values of that key after a reset, with ${…} for what
	// moves. Empty: the unit's own line holds.
	Start   []string
	Adopted []Origin // the lines of the unit's own files that adopt took over

	Extra []string // lines of the section that a newer version wrote, kept as they are
}

// Origin is a line that adopt took over: where it was and what it said then.
type Origin struct {
	File   string
	Line   int    // 1 is the first
	SHA256 string // of the line's key and value as systemd reads them, in hex
}

// rolledBack tells whether the file is the one that a rollback by hand puts in place: once it is there, another
// rollback changes nothing. A file that came back by itself, because a package failed, is one like any other.
func (d *DropIn) rolledBack() bool { return !d.RolledBackFrom.isZero() && d.Act != actReturn }

// errNotOurs is wrapped by every error about a drop-in that this program did not write, or that was edited.
var errNotOurs = errors.New("not as this program writes it")

// Encode returns the bytes of the file.
func (d *DropIn) Encode() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%sthe package that %s runs at its next start.\n%s\n%s\n[Service]\n", header1, d.Unit, header2, header3)
	for _, a := range d.Environment {
		q, err := systemd.QuoteAssignment(a.Key, a.Value)
		if err != nil {
			return nil, fmt.Errorf("quote %s: %w", a.Key, err)
		}
		fmt.Fprintf(&b, "Environment=%s\n", q)
	}
	for i, value := range d.Start {
		if i == 0 {
			b.WriteString("ExecStart=\n")
		}
		if value == "" || strings.ContainsAny(value, "\n\r\x00") || value != strings.TrimSpace(value) || strings.HasSuffix(value, `\`) {
			return nil, fmt.Errorf("the command %q is not one line", value)
		}
		fmt.Fprintf(&b, "ExecStart=%s\n", value)
	}
	fmt.Fprintf(&b, "\n[%s]\n", section)
	write := func(key string, fields ...string) {
		for i, f := range fields {
			fields[i] = quoteField(f)
		}
		fmt.Fprintf(&b, "%s=%s\n", key, strings.Join(fields, " "))
	}
	ref := func(key string, p PackageRef) {
		if !p.isZero() {
			write(key, p.Name, p.Digest, p.Path)
		}
	}
	write("Unit", d.Unit)
	ref("Package", d.Package)
	write("Act", d.Act)
	write("Generation", strconv.Itoa(d.Generation))
	write("By", d.By)
	write("At", d.At.UTC().Format(time.RFC3339))
	ref("ServedBefore", d.ServedBefore)
	ref("RolledBackFrom", d.RolledBackFrom)
	write("Rollback", d.Rollback)
	for _, block := range d.Blocks {
		write("Blocked", block.Name, block.Digest, block.Reason)
	}
	if d.Lifted {
		write("Lifted", "yes")
	}
	for _, o := range d.Adopted {
		write("Adopted", o.File, strconv.Itoa(o.Line), o.SHA256)
	}
	for _, line := range d.Extra {
		b.WriteString(line + "\n")
	}
	return b.Bytes(), nil
}

// block adds a block, or renews the reason of one that is there.
func (d *DropIn) block(p PackageRef, reason string) {
	d.Blocks = append(without(d.Blocks, p), Block{p.Name, p.Digest, reason})
}

// without returns blocks less the ones of p.
func without(blocks []Block, p PackageRef) []Block {
	var out []Block
	for _, b := range blocks {
		if !p.same(PackageRef{Name: b.Name, Digest: b.Digest}) {
			out = append(out, b)
		}
	}
	return out
}

// blocked finds the block of p.
func blocked(blocks []Block, p PackageRef) (Block, bool) {
	for _, b := range blocks {
		if p.same(PackageRef{Name: b.Name, Digest: b.Digest}) {
			return b, true
		}
	}
	return Block{}, false
}
