package packager

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// ManifestName is the manifest's file name at the root of a package.
const ManifestName = "1bit-package.json"

// Schema is the version of the manifest's format that this program reads and
// writes.
const Schema = 1

// DirPrefix begins the name of every package directory.
const DirPrefix = "1bit-"

// Manifest describes one package. [Manifest.Encode] gives its canonical bytes.
type Manifest struct {
	// Schema is the format's version, [Schema].
	Schema int `json:"schema"`
	// Flavour is the engine's kind, such as "hrx".
	Flavour string `json:"flavour"`
	// ID is the short commit or tag that tells builds of a flavour apart.
	ID string `json:"id"`
	// Version is the semantic version, "" if the package has none.
	Version string `json:"version,omitempty"`
	// Tag is the version in its own spelling, such as "v2026.44".
	Tag string `json:"tag,omitempty"`
	// Components are the sources inside the package, sorted by name.
	Components []Component `json:"components"`
	// EntryPoints maps an entry's name to the path of its program.
	EntryPoints map[string]string `json:"entry_points"`
	// FrontDoor lists the verbs that the package's own 1bit answers.
	FrontDoor []string `json:"front_door"`
	// Requires lists what the host must have.
	Requires []Requirement `json:"requires"`
	// Fixes lists what the registry of fixes knew when the package was made,
	// sorted by id: the carried, the missing and the unknown.
	Fixes []Fix `json:"fixes,omitempty"`
	// Machine is the processor of the ELF files, such as "x86_64"; "" if there
	// are none.
	Machine string `json:"machine,omitempty"`
	// GPUTargets are the processors of the GPU code, sorted, such as "gfx1151".
	GPUTargets []string `json:"gpu_targets,omitempty"`
	// Glibc is the least version of the C library that the programs ask for,
	// such as "2.38"; "" if none, or if the package brings its own.
	Glibc string `json:"glibc,omitempty"`
	// HostLibraries are the libraries that the host must have, sorted by name.
	HostLibraries []HostLibrary `json:"host_libraries,omitempty"`
	// SourceDateEpoch is the time stamp of every entry, in seconds since 1970.
	SourceDateEpoch int64 `json:"source_date_epoch"`
	// Imported marks a manifest that was computed from a directory.
	Imported bool `json:"imported,omitempty"`
	// Files lists every entry but the root and the manifest, sorted by path.
	Files []File `json:"files"`
}

// Component is one source inside the package and the commit it was built from.
type Component struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
	URL    string `json:"url,omitempty"`
	// Declared is true when a person typed the pin and nothing established it.
	Declared bool `json:"declared,omitempty"`
	// Dirty is true when the checkout had changes that no commit holds.
	Dirty bool `json:"dirty,omitempty"`
}

// Fix is an issue that was solved, and whether the package carries that.
type Fix struct {
	// ID names the issue, such as "engine#123".
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	// Component is the source that the commits are of.
	Component string `json:"component"`
	// Commits solved the issue, all of them together.
	Commits []string `json:"commits"`
	// Carried is nil when it could not be established. That is never a yes.
	Carried *bool `json:"carried"`
	// How says how Carried was established, or why it could not be.
	How string `json:"how"`
	// Off is the environment variable that turns the fix off, with its value,
	// such as "ONEBIT_HRX_DECODE_SPLIT=0".
	Off string `json:"off,omitempty"`
}

// HostLibrary is a shared library that the host must have.
type HostLibrary struct {
	// Name is what the dynamic loader looks for, such as "libamdhip64.so.7".
	Name string `json:"name"`
	// NeededBy is the path of an entry that asks for it.
	NeededBy string `json:"needed_by"`
	// Dirs are the absolute folders that the entry tells the loader to look
	// in first.
	Dirs []string `json:"dirs,omitempty"`
}

// Kinds of requirement.
const (
	RequirePath            = "path"
	RequireDevice          = "device"
	RequireKernelParameter = "kernel_parameter"
	RequireLibrary         = "library"
)

// Requirement is something the host must have: a path, a device, a shared
// library by the name that the loader looks for, or a kernel parameter with a
// value.
type Requirement struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Types of entry.
const (
	TypeFile = "file"
	TypeDir  = "dir"
	TypeLink = "link"
)

// File is one entry of a package.
type File struct {
	// Path is relative to the package's root, with slashes.
	Path string `json:"path"`
	// Type is "file", "dir" or "link".
	Type string `json:"type"`
	// Mode holds the permission bits; a link has none.
	Mode Mode `json:"mode,omitempty"`
	// Size is the content's length in bytes, of files only.
	Size int64 `json:"size,omitempty"`
	// SHA256 is the content's digest in lower-case hex, of files only.
	SHA256 string `json:"sha256,omitempty"`
	// Target is where a link points.
	Target string `json:"target,omitempty"`
	// MTime is the modification time in nanoseconds since 1970, in imported
	// packages only. It is no part of the digest.
	MTime int64 `json:"mtime_ns,omitempty"`
}

// Mode holds permission bits. In JSON it is an octal string such as "0755".
type Mode uint32

// MarshalText writes the octal spelling.
func (m Mode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads the octal spelling.
func (m *Mode) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 8, 32)
	if err != nil {
		return fmt.Errorf("mode %q is not octal", b)
	}
	*m = Mode(n)
	return nil
}

// Name is "<flavour>-<id>".
func (m *Manifest) Name() string { return m.Flavour + "-" + m.ID }

// DirName is "1bit-<flavour>-<id>", the name of the package's directory.
func (m *Manifest) DirName() string { return DirPrefix + m.Name() }

// Size is the sum of the files' sizes in bytes.
func (m *Manifest) Size() int64 {
	var n int64
	for i := range m.Files {
		n += m.Files[i].Size
	}
	return n
}

// Pins maps every component to its commit.
func (m *Manifest) Pins() map[string]string {
	pins := make(map[string]string, len(m.Components))
	for _, c := range m.Components {
		pins[c.Name] = c.Commit
	}
	return pins
}

// Encode returns the canonical bytes: UTF-8 JSON, keys in the order of the
// struct, one space of indentation, a newline at the end. A manifest that is
// not valid has none; the error wraps [ErrIntegrity].
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m.encode()
}

func (m *Manifest) encode() ([]byte, error) {
	c := *m
	// A nil list and an empty one are the same manifest.
	if c.Components == nil {
		c.Components = []Component{}
	}
	if c.EntryPoints == nil {
		c.EntryPoints = map[string]string{}
	}
	if c.FrontDoor == nil {
		c.FrontDoor = []string{}
	}
	if c.Requires == nil {
		c.Requires = []Requirement{}
	}
	if c.Files == nil {
		c.Files = []File{}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(&c); err != nil {
		return nil, fmt.Errorf("encode manifest of %s: %w", m.Name(), err)
	}
	return buf.Bytes(), nil
}

// Digest is the package's identity, "sha256:" and 64 hex digits over the
// canonical bytes. The modification times of an imported package are left
// out: touching a file does not make it another package.
func (m *Manifest) Digest() (string, error) {
	c := *m
	if m.Imported {
		c.Files = make([]File, len(m.Files))
		copy(c.Files, m.Files)
		for i := range c.Files {
			c.Files[i].MTime = 0
		}
	}
	b, err := c.Encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// DecodeManifest reads a manifest. It is strict: unknown keys, a schema of
// another version, anything [Manifest.Validate] objects to and any spelling
// but the canonical one are errors, which wrap [ErrIntegrity].
func DecodeManifest(b []byte) (*Manifest, error) {
	if int64(len(b)) > MaxManifest {
		return nil, fmt.Errorf("manifest has %d bytes, limit %d: %w", len(b), int64(MaxManifest), ErrIntegrity)
	}
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("manifest is not JSON: %w: %w", err, ErrIntegrity)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("manifest has schema %d, this program knows %d: %w", head.Schema, Schema, ErrIntegrity)
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("decode manifest: %w: %w", err, ErrIntegrity)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	canonical, err := m.encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(b, canonical) {
		return nil, fmt.Errorf("manifest of %s is not in canonical form: %w", m.Name(), ErrIntegrity)
	}
	return &m, nil
}
