package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

// Proposed is a proposal: a switch that somebody suggests. It changes nothing. It is a file, in the state of the
// services' own account or handed over from another one, and all that it says is a claim, except that a package with
// another digest can never be armed by it.
type Proposed struct {
	Unit    string
	Scope   systemd.Scope
	Package string // its name
	Digest  string
	By      string
	At      time.Time
	Reason  string // may be empty
}

var proposalKeys = [...]string{"unit", "scope", "package", "digest", "by", "at", "reason"}

// proposalsDir is the folder of the proposals below StateDir, one file a unit: <unit>.json.
const proposalsDir = "proposals"

func (h *Host) proposalPath(unit string) string {
	return filepath.Join(h.StateDir, proposalsDir, unit+".json")
}

// Encode returns the bytes of the file.
func (p *Proposed) Encode() ([]byte, error) {
	fields := struct {
		Unit    string `json:"unit"`
		Scope   string `json:"scope"`
		Package string `json:"package"`
		Digest  string `json:"digest"`
		By      string `json:"by"`
		At      string `json:"at"`
		Reason  string `json:"reason,omitempty"`
	}{p.Unit, string(p.Scope), p.Package, p.Digest, p.By, p.At.UTC().Format(time.RFC3339), p.Reason}
	data, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode a proposal: %w", err)
	}
	return append(data, '\n'), nil
}

var (
	packageName   = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$`)
	packageDigest = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// DecodeProposal reads a proposal's bytes, strictly.
func DecodeProposal(data []byte) (*Proposed, error) {
	fields, err := parseFields(data, proposalKeys[:]...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProposal, err)
	}
	p := &Proposed{
		Unit: fields["unit"], Scope: systemd.Scope(fields["scope"]), Package: fields["package"],
		Digest: fields["digest"], By: fields["by"], Reason: fields["reason"],
	}
	p.At, err = time.Parse(time.RFC3339, fields["at"])
	full, uerr := unitName(p.Unit)
	switch {
	case err != nil:
		err = fmt.Errorf("%q is no time", fields["at"])
	case uerr != nil:
		err = uerr
	case full != p.Unit:
		err = fmt.Errorf("%q is not the whole name of a service", p.Unit)
	case p.Scope != systemd.ScopeUser && p.Scope != systemd.ScopeSystem:
		err = fmt.Errorf("its scope is %q, not user or system", p.Scope)
	case !packageName().MatchString(p.Package):
		err = fmt.Errorf("%q is not the name of a package", p.Package)
	case !packageDigest().MatchString(p.Digest):
		err = fmt.Errorf("%q is no digest", p.Digest)
	case strings.TrimSpace(p.By) == "":
		err = errors.New("it does not say whose it is")
	case len(p.By) > maxName || len(p.Reason) > maxReason:
		err = errors.New("what it says of who or why is too long")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProposal, err)
	}
	p.At = p.At.UTC()
	return p, nil
}

// maxName bounds what is read as somebody's name, in bytes.
const maxName = 256

// ErrProposal is wrapped by every error about bytes that are no proposal, or none of this unit.
var ErrProposal = errors.New("it is no proposal of this program")

// ReadProposal reads a proposal that somebody handed over.
func ReadProposal(path string) (*Proposed, error) {
	data, err := readFields(path)
	if err == nil {
		var p *Proposed
		if p, err = DecodeProposal(data); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("read the proposal %s: %w", path, err)
}

// proposal reads what is proposed for a unit, nil where nothing is. The error says how to get rid of a bad one.
func (h *Host) proposal(unit string) (*Proposed, error) {
	p, err := ReadProposal(h.proposalPath(unit))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && p.Unit != unit {
		err = fmt.Errorf("read the proposal %s: %w: it is for %s", h.proposalPath(unit), ErrProposal, p.Unit)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; get rid of it with: 1bit pkg propose %s --withdraw", err, unit)
	}
	if p.Scope != h.Scope {
		return nil, nil // of the other scope, which shares this state
	}
	return p, nil
}

// of refuses a proposal that is for another unit, or not for exactly this package.
func (p *Proposed) of(scope systemd.Scope, unit string, pkg PackageRef) error {
	switch {
	case p == nil:
		return nil
	case p.Unit != unit || p.Scope != scope:
		return fmt.Errorf("%w: the proposal is for %s of the %s scope, and this is %s of the %s scope", ErrRefused, p.Unit, p.Scope, unit, scope)
	case p.Package != pkg.Name || p.Digest != pkg.Digest:
		return fmt.Errorf("%w: the proposal is for %s with the digest %s, and what is installed is %s with %s: it is another package",
			ErrRefused, p.Package, p.Digest, pkg.Name, pkg.Digest)
	}
	return nil
}

// describeProposal adds what status says of a proposal.
func (h *Host) describeProposal(unit string, s *Service, pl *place) {
	p, err := h.proposal(unit)
	if err != nil && !errors.Is(err, fs.ErrPermission) { // another account's state is its own matter
		s.find("proposal", "", "%v", err)
	}
	if p == nil {
		return
	}
	s.Proposed = &Proposal{Package: p.Package, By: p.By, At: p.At, Digest: p.Digest, Reason: p.Reason}
	for _, root := range pl.roots {
		pkg := pl.pkg(filepath.Join(root, packager.DirPrefix+p.Package))
		switch {
		case pkg == nil:
		case pkg.Digest != p.Digest:
			s.find("proposal", "withdraw it: 1bit pkg propose "+unit+" --withdraw",
				"%s is proposed with another digest (%s) than the installed one has (%s): it cannot be taken", p.Package, p.Digest, pkg.Digest)
			return
		default:
			return
		}
	}
	s.find("proposal", "install it, or withdraw the proposal: 1bit pkg propose "+unit+" --withdraw", "%s is proposed and not installed", p.Package)
}

// usesProposals adds the packages that are proposed for services: in the state of this scope, and for the system in
// that of every user, as far as it may be read.
func (h *Host) usesProposals(t *unitTree) {
	dirs := []string{filepath.Join(h.StateDir, proposalsDir)}
	if h.Scope == systemd.ScopeSystem {
		for _, home := range t.homes {
			dirs = append(dirs, filepath.Join(home, ".local/state/1bit", proposalsDir))
		}
	}
	for i, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !absent(err) && i == 0 {
			t.unread = append(t.unread, err)
		}
		for _, e := range entries {
			unit, ok := strings.CutSuffix(e.Name(), ".json")
			if !ok {
				continue
			}
			p, err := ReadProposal(filepath.Join(dir, e.Name()))
			switch {
			case err == nil:
				t.use(PackageRef{Name: p.Package, Digest: p.Digest}, "proposed for "+p.Unit)
			case i == 0 && !absent(err):
				t.unread = append(t.unread, fmt.Errorf("%w; get rid of it with: 1bit pkg propose %s --withdraw", err, unit))
			}
		}
	}
}
