package packager

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sha(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func dir(path string) File { return File{Path: path, Type: TypeDir, Mode: 0o755} }
func link(path, target string) File {
	return File{Path: path, Type: TypeLink, Target: target}
}
func file(path, content string) File {
	return File{Path: path, Type: TypeFile, Mode: 0o644, Size: int64(len(content)), SHA256: sha(content)}
}
func program(path, content string) File {
	f := file(path, content)
	f.Mode = 0o755
	return f
}

func example() *Manifest {
	return &Manifest{
		Schema: Schema, Flavour: "hrx", ID: "3092596", Version: "2026.44.0", Tag: "v2026.44",
		Components: []Component{
			{Name: "engine", Commit: "3092596c1a", URL: "https://example.org/engine.git", Declared: true},
			{Name: "llama.cpp", Commit: "00adc2b", Declared: true},
		},
		EntryPoints: map[string]string{"1bit": "1bit", "llama-server": "hrx/llama/bin/llama-server"},
		FrontDoor:   []string{"serve", "bench"},
		Requires:    []Requirement{{Kind: RequirePath, Name: "/opt/rocm-therock"}, {Kind: RequireKernelParameter, Name: "amdgpu.cwsr_enable", Value: "0"}},
		Fixes: []Fix{
			{ID: "engine#123", Title: "decode-split race", Component: "llama.cpp", Commits: []string{"00adc2b"}, Carried: new(true), How: "ancestor of the pin", Off: "ONEBIT_HRX_DECODE_SPLIT=0"},
			{ID: "engine#570", Component: "engine", Commits: []string{"7871c71d"}, How: "the history is shallow"},
		},
		Machine: "x86_64", GPUTargets: []string{"gfx1100", "gfx1151"}, Glibc: "2.38",
		HostLibraries: []HostLibrary{
			{Name: "libamdhip64.so.7", NeededBy: "hrx/llama/bin/llama-server", Dirs: []string{"/opt/rocm-therock/lib"}},
			{Name: "libc.so.6", NeededBy: "1bit"},
		},
		SourceDateEpoch: 1793000000,
		Files: []File{
			program("1bit", "front end"), dir("hrx"), dir("hrx/llama"), dir("hrx/llama/bin"),
			link("hrx/llama/bin/libx.so", "libx.so.1"), file("hrx/llama/bin/libx.so.1", "library <&>"),
			program("hrx/llama/bin/llama-server", "server"), file("naïve name", ""),
		},
	}
}

func TestManifestRoundTrip(t *testing.T) {
	m := example()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
	digest, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want := "sha256:" + sha(string(b)); digest != want {
		t.Errorf("digest %s, want that of the bytes, %s", digest, want)
	}
	// The canonical form is a promise: drop-ins and indexes keep digests.
	if want := "sha256:" + canonicalExample; digest != want {
		t.Errorf("digest %s, want %s\n%s", digest, want, b)
	}
	m.Fixes, m.Machine, m.GPUTargets, m.Glibc, m.HostLibraries = nil, "", nil, "", nil
	if digest, err = m.Digest(); err != nil || digest != "sha256:"+canonicalShorter {
		t.Errorf("without what may be left out: digest %s, %v, want %s", digest, err, canonicalShorter)
	}
}

func TestEmptyListsAreOneManifest(t *testing.T) {
	a := &Manifest{Schema: Schema, Flavour: "x", ID: "1"}
	b := &Manifest{Schema: Schema, Flavour: "x", ID: "1", Files: []File{}, Components: []Component{}, EntryPoints: map[string]string{}, FrontDoor: []string{}, Requires: []Requirement{}}
	x, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s\n%s", x, y)
	}
}

func TestImportedDigestIgnoresTimes(t *testing.T) {
	m := example()
	m.Imported = true
	a, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	m.Files[0].MTime = 12345
	b, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("touching a file changed the digest from %s to %s", a, b)
	}
	if m.Files[0].MTime != 12345 {
		t.Error("computing the digest changed the manifest")
	}
}

func TestDecodeManifestRefuses(t *testing.T) {
	b, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for name, bad := range map[string]string{
		"empty":          "",
		"not JSON":       "hello",
		"newer schema":   strings.Replace(good, `"schema": 1`, `"schema": 2`, 1),
		"unknown key":    strings.Replace(good, `"flavour"`, `"flavor": "x",`+"\n"+` "flavour"`, 1),
		"key twice":      strings.Replace(good, `"id": "3092596",`, `"id": "3092596", "id": "3092596",`, 1),
		"other case":     strings.Replace(good, `"id"`, `"ID"`, 1),
		"other spacing":  strings.Replace(good, `"schema": 1`, `"schema":1`, 1),
		"more after it":  good + "{}",
		"cut":            good[:len(good)-3],
		"mode a number":  strings.Replace(good, `"0755"`, `493`, 1),
		"mode not octal": strings.Replace(good, `"0755"`, `"0799"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if bad == good {
				t.Fatal("the case does not change the manifest")
			}
			if m, err := DecodeManifest([]byte(bad)); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v, %v", m, err)
			}
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	add := func(files ...File) func(*Manifest) {
		return func(m *Manifest) {
			m.EntryPoints, m.FrontDoor, m.HostLibraries, m.Files = nil, nil, nil, files
		}
	}
	for name, change := range map[string]func(*Manifest){
		"flavour empty":             func(m *Manifest) { m.Flavour = "" },
		"flavour upper case":        func(m *Manifest) { m.Flavour = "HRX" },
		"id with slash":             func(m *Manifest) { m.ID = "a/b" },
		"id of dots":                func(m *Manifest) { m.ID = ".." },
		"id too long":               func(m *Manifest) { m.ID = strings.Repeat("a", 65) },
		"version of another tag":    func(m *Manifest) { m.Version = "2026.45.0" },
		"tag no version":            func(m *Manifest) { m.Tag = "nightly" },
		"time before 1970":          func(m *Manifest) { m.SourceDateEpoch = -1 },
		"commit not hex":            func(m *Manifest) { m.Components[0].Commit = "main" },
		"component twice":           func(m *Manifest) { m.Components[1].Name = "engine" },
		"url with newline":          func(m *Manifest) { m.Components[0].URL = "x\ny" },
		"verb with space":           func(m *Manifest) { m.FrontDoor = []string{"serve it"} },
		"verb twice":                func(m *Manifest) { m.FrontDoor = []string{"serve", "serve"} },
		"verbs without front end":   func(m *Manifest) { delete(m.EntryPoints, "1bit") },
		"requirement unknown":       func(m *Manifest) { m.Requires[0].Kind = "luck" },
		"requirement relative":      func(m *Manifest) { m.Requires[0].Name = "opt" },
		"parameter without value":   func(m *Manifest) { m.Requires[1].Value = "" },
		"library a path":            func(m *Manifest) { m.Requires[0] = Requirement{Kind: RequireLibrary, Name: "lib/x.so"} },
		"library with value":        func(m *Manifest) { m.Requires[0] = Requirement{Kind: RequireLibrary, Name: "x.so.1", Value: "1"} },
		"fix not named":             func(m *Manifest) { m.Fixes[0].ID = "" },
		"fix twice":                 func(m *Manifest) { m.Fixes = append(m.Fixes, m.Fixes[0]) },
		"fix without commit":        func(m *Manifest) { m.Fixes[0].Commits = nil },
		"fix with a branch":         func(m *Manifest) { m.Fixes[0].Commits[0] = "main" },
		"fix with a commit twice":   func(m *Manifest) { m.Fixes[0].Commits = []string{"00adc2b", "00adc2b"} },
		"fix of no component":       func(m *Manifest) { m.Fixes[0].Component = "" },
		"fix off by a word":         func(m *Manifest) { m.Fixes[0].Off = "split" },
		"fix with newline":          func(m *Manifest) { m.Fixes[0].How = "a\nb" },
		"machine with space":        func(m *Manifest) { m.Machine = "x86 64" },
		"GPU target twice":          func(m *Manifest) { m.GPUTargets = []string{"gfx1151", "gfx1151"} },
		"GPU target upper case":     func(m *Manifest) { m.GPUTargets = []string{"GFX1151"} },
		"glibc no version":          func(m *Manifest) { m.Glibc = "new" },
		"host library a path":       func(m *Manifest) { m.HostLibraries[0].Name = "../x.so" },
		"host library twice":        func(m *Manifest) { m.HostLibraries = append(m.HostLibraries, m.HostLibraries[0]) },
		"host library of nobody":    func(m *Manifest) { m.HostLibraries[0].NeededBy = "nowhere" },
		"host library folder":       func(m *Manifest) { m.HostLibraries[0].Dirs = []string{"lib"} },
		"entry point missing":       func(m *Manifest) { m.EntryPoints["x"] = "nowhere" },
		"entry point not program":   func(m *Manifest) { m.EntryPoints["x"] = "naïve name" },
		"entry point a folder":      func(m *Manifest) { m.EntryPoints["x"] = "hrx" },
		"entry point outside":       func(m *Manifest) { m.EntryPoints["x"] = "../bin/sh" },
		"entry point absolute":      func(m *Manifest) { m.EntryPoints["x"] = "/bin/sh" },
		"path absolute":             add(file("/etc/passwd", "")),
		"path up":                   add(file("../x", "")),
		"path not clean":            add(dir("a"), file("a//b", "")),
		"path with dot":             add(file("./a", "")),
		"path empty":                add(file("", "")),
		"path a dot":                add(dir(".")),
		"path of the manifest":      add(file(ManifestName, "")),
		"path with newline":         add(file("a\nb", "")),
		"path with escape":          add(file("a\x1b[31m", "")),
		"path not UTF-8":            add(file("a\xff", "")),
		"path too long":             add(file(strings.Repeat("a/", maxPath/2)+"a", "")),
		"name too long":             add(file(strings.Repeat("a", 256), "")),
		"out of order":              add(file("b", ""), file("a", "")),
		"twice":                     add(file("a", ""), file("a", "")),
		"folder not listed":         add(file("a/b", "")),
		"file as folder":            add(file("a", ""), file("a/b", "")),
		"link as folder":            add(link("a", "b"), file("a/x", ""), dir("b")),
		"case twins":                add(file("LICENSE", ""), file("license", "")),
		"case twins folders":        add(dir("A"), dir("a")),
		"case twins Kelvin":         add(file("K", ""), file("\u212a", "")),
		"case twins sharp s":        add(file("STRASSE", ""), file("straße", "")),
		"case twins final sigma":    add(file("ας", ""), file("ασ", "")),
		"twins by composition":      add(file("cafe\u0301", ""), file("caf\u00e9", "")),
		"twins by both":             add(file("CAFE\u0301", ""), file("caf\u00e9", "")),
		"twins by order of marks":   add(file("a\u0301\u0323", ""), file("a\u0323\u0301", "")),
		"twins by Hangul":           add(file("\u1100\u1161", ""), file("\uac00", "")),
		"twins by folder":           add(dir("e\u0301"), file("e\u0301/a", ""), dir("\u00e9")),
		"twins by Angstrom sign":    add(file("\u00c5", ""), file("\u212b", "")),
		"mode setuid":               add(File{Path: "a", Type: TypeFile, Mode: 0o4755, SHA256: sha("")}),
		"mode odd":                  add(File{Path: "a", Type: TypeFile, Mode: 0o600, SHA256: sha("")}),
		"type unknown":              add(File{Path: "a", Type: "device", Mode: 0o644}),
		"no digest":                 add(File{Path: "a", Type: TypeFile, Mode: 0o644}),
		"negative size":             add(File{Path: "a", Type: TypeFile, Mode: 0o644, Size: -1, SHA256: sha("")}),
		"size of a bomb":            add(File{Path: "a", Type: TypeFile, Mode: 0o644, Size: 1 << 50, SHA256: sha("")}),
		"sum of sizes of a bomb":    add(File{Path: "a", Type: TypeFile, Mode: 0o644, Size: maxBytes, SHA256: sha("")}, File{Path: "b", Type: TypeFile, Mode: 0o644, Size: 1, SHA256: sha("")}),
		"sum of sizes overflows":    add(File{Path: "a", Type: TypeFile, Mode: 0o644, Size: 1<<63 - 1, SHA256: sha("")}, File{Path: "b", Type: TypeFile, Mode: 0o644, Size: 1<<63 - 1, SHA256: sha("")}),
		"folder with size":          add(File{Path: "a", Type: TypeDir, Mode: 0o755, Size: 1}),
		"time on a file":            add(File{Path: "a", Type: TypeFile, Mode: 0o644, SHA256: sha(""), MTime: 1}),
		"link absolute":             add(link("a", "/etc/passwd")),
		"link up":                   add(link("a", "../x")),
		"link up and back":          add(file("a", ""), link("b", "../1bit-hrx-3092596/a")),
		"link out of a folder":      add(dir("a"), link("a/b", "../../etc/passwd")),
		"link dangling":             add(link("a", "b")),
		"link empty":                add(link("a", "")),
		"link loop":                 add(link("a", "b"), link("b", "a")),
		"link to itself":            add(link("a", "a")),
		"link through a file":       add(file("a", ""), link("b", "a/../a")),
		"link through a link out":   add(dir("d"), dir("d/e"), link("d/e/up", "../.."), link("x", "d/e/up/../etc/passwd")),
		"chain of harmless links":   add(dir("d"), link("d/a", ".."), dir("d/b"), link("d/b/c", "../a/.."), link("x", "d/b/c")),
		"link with newline":         add(link("a", "b\n"), file("b\n", "")),
		"link through a long chain": add(link("a", strings.Repeat("./", 510)+"b"), link("b", strings.Repeat("./", 510)+"c"), link("c", strings.Repeat("./", 510)+"d"), file("d", "")),
	} {
		t.Run(name, func(t *testing.T) {
			m := example()
			change(m)
			if err := m.Validate(); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestValidateRefusesWhatCannotBeSeen tries every place where a manifest has
// text of its own choice, with characters that a terminal acts on or hides.
func TestValidateRefusesWhatCannotBeSeen(t *testing.T) {
	for _, r := range []rune{
		0, '\t', 0x7f, 0x85, 0x9b, // control
		0x00ad, 0x061c, 0x200b, 0x200d, 0x200e, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0xfeff, 0xfff9, 0xe0041, // format
		0x2028, 0x2029, // separators
		0x034f, 0x115f, 0x3164, 0xfe0f, 0xe0100, // shown as nothing
	} {
		text := "a" + string(r) + "b"
		for place, change := range map[string]func(*Manifest){
			"file": func(m *Manifest) {
				m.EntryPoints, m.FrontDoor, m.HostLibraries, m.Files = nil, nil, nil, []File{file(text, "")}
			},
			"folder": func(m *Manifest) {
				m.EntryPoints, m.FrontDoor, m.HostLibraries, m.Files = nil, nil, nil, []File{dir(text)}
			},
			"target": func(m *Manifest) {
				m.EntryPoints, m.FrontDoor, m.HostLibraries, m.Files = nil, nil, nil, []File{link("x", text)}
			},
			"fix":         func(m *Manifest) { m.Fixes[0].Title = text },
			"switch off":  func(m *Manifest) { m.Fixes[0].Off = "A=" + text },
			"library":     func(m *Manifest) { m.HostLibraries[0].Dirs = []string{"/" + text} },
			"url":         func(m *Manifest) { m.Components[0].URL = text },
			"requirement": func(m *Manifest) { m.Requires[0].Name = "/" + text },
			"parameter":   func(m *Manifest) { m.Requires[1].Value = text },
		} {
			m := example()
			change(m)
			if err := m.Validate(); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "control or invisible character") {
				t.Errorf("%U in a %s: got %v", r, place, err)
			} else if strings.ContainsRune(err.Error(), r) {
				t.Errorf("%U in a %s: the error repeats it: %q", r, place, err)
			}
		}
	}
}

func TestValidateAccepts(t *testing.T) {
	for name, files := range map[string][]File{
		"none":                  nil,
		"link to a folder":      {dir("a"), link("b", "a")},
		"link to the root":      {link("a", ".")},
		"link over the root":    {dir("a"), link("a/b", "../c"), file("c", "")},
		"link through a link":   {dir("a"), file("a/f", ""), link("b", "a"), link("c", "b/f")},
		"back through a link":   {dir("a"), dir("a/b"), file("a/f", ""), link("l", "a/b"), link("m", "l/../f")},
		"names that look risky": {file("-rf", ""), file("..x", ""), file("a b", ""), file(`c\d`, ""), file("x ", "")},
		"other scripts":         {file("naïve", ""), file("модель", ""), file("模型", ""), file("모델", ""), file("\U0001f600", "")},
	} {
		t.Run(name, func(t *testing.T) {
			m := example()
			m.EntryPoints, m.FrontDoor, m.HostLibraries, m.Files = nil, nil, nil, files
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for tag, want := range map[string]string{
		"v2026.44": "2026.44.0", "2026.44": "2026.44.0", "v2026.44.1": "2026.44.1", "v2026.04": "2026.4.0",
		"v2026.00": "2026.0.0", "v1.2.3-rc.1": "1.2.3-rc.1", "v2026.44+rocm7": "2026.44.0+rocm7", "v7": "7.0.0",
		"V1": "1.0.0", "v2026.44-0-gfeedbee": "2026.44.0",
		// These have an order, and no semantic version.
		"v2026.04.22.3": "", "b6123": "", "release_20260513.0": "", "v2026.44-5-gfeedbee": "", "v2026.44-dirty": "", "v2026.44-rc..1": "",
	} {
		if got, err := ParseVersion(tag); got != want || err != nil {
			t.Errorf("ParseVersion(%q) = %q, %v; want %q", tag, got, err, want)
		}
	}
	for _, tag := range []string{
		"", "v", "nightly", "v2026.44-", "v99999999999999999999", "v1 ", "0f1e2d3", "release/1.0", "v1." + strings.Repeat("1", maxTag),
	} {
		if got, err := ParseVersion(tag); err == nil {
			t.Errorf("ParseVersion(%q) = %q", tag, got)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	b, err := example().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"schema": 1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeManifest(b)
		if err != nil {
			if !errors.Is(err, ErrIntegrity) {
				t.Fatalf("error without ErrIntegrity: %v", err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, again) {
			t.Fatalf("not canonical:\n%s\n%s", b, again)
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	f.Add("v2026.44")
	f.Add("v1.2.3-rc.1+x")
	f.Fuzz(func(t *testing.T, tag string) {
		v, err := ParseVersion(tag)
		if err != nil || v == "" {
			return
		}
		if again, err := ParseVersion(v); err != nil || again != v {
			t.Fatalf("%q gives %q, which gives %q, %v", tag, v, again, err)
		}
	})
}

const canonicalExample = "a0a5618b1220a57ace066de8ce8828a6c7018fe0fc843e38ace5660ce7e4a837"
const canonicalShorter = "bf02ac1f5632be226999cb33f742d23cc79db85bb8d24009ea6249916fbaa810"
