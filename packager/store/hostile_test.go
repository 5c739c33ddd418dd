package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager"
)

// parts are the entries of an archive, each with its headers, content and
// padding as they stand there; so a hostile one can stand between them.
type parts []part

type part struct {
	name string
	raw  []byte
}

const server, library = "hrx/llama/bin/llama-server", "hrx/llama/bin/libx.so.1"

// hostile are packages with one thing in them that must not be there.
func hostile(t testing.TB) map[string][]byte {
	const outside = "../../../../../outside/victim"
	out := map[string][]byte{}
	add := func(name string, change func(parts) parts) { out[name] = packed(t, change(goodParts(t)).plain()) }
	text := func(name, from, to string) {
		m, _ := sample("x", "a")
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), from) {
			t.Fatalf("%s: no %s in the manifest", name, from)
		}
		add(name, func(p parts) parts {
			p[p.at(packager.ManifestName)] = manifestPart(t, strings.Replace(string(b), from, to, 1))
			return p
		})
	}
	// Written through a link of the same archive.
	add("link, then a file of its name", func(p parts) parts { return p.insert(server, tarEntry(t, symlink(server, outside), "")) })
	add("link for a file", func(p parts) parts { return p.replace(server, tarEntry(t, symlink(server, outside), "")) })
	add("hard link, then a file of its name", func(p parts) parts {
		h := tarFile(server)
		h.Typeflag, h.Linkname = tar.TypeLink, outside
		return p.insert(server, tarEntry(t, h, ""))
	})
	add("link for a folder", func(p parts) parts {
		return p.replace("hrx/llama", tarEntry(t, symlink("hrx/llama", "../../../outside"), ""))
	})
	add("chain of links", func(p parts) parts {
		return p.insert("hrx", tarEntry(t, symlink("a", "."), ""), tarEntry(t, symlink("a/b", ".."), ""), tarEntry(t, symlink("a/b/c", ".."), ""), tarEntry(t, tarFile("a/b/c/victim"), "x"))
	})
	text("manifest with a link outside", `"target": "libx.so.1"`, `"target": "../../../../outside/victim"`)
	text("manifest with an absolute link", `"target": "libx.so.1"`, `"target": "/etc/passwd"`)
	text("manifest with a path outside", `"path": "hrx/llama/bin/llama-server"`, `"path": "../../outside/victim"`)
	add("path outside", func(p parts) parts { return p.insert(server, tarEntry(t, tarFile("../../outside/victim"), "x")) })
	add("absolute path", func(p parts) parts {
		h := tarFile("")
		h.Name = "/tmp/1bit-hostile"
		return p.insert(server, tarEntry(t, h, "x"))
	})
	// From a Mac and from git archive.
	add("AppleDouble", func(p parts) parts { return p.insert("1bit", tarEntry(t, tarFile("._1bit"), "\x00\x05\x16\x07")) })
	add(".DS_Store", func(p parts) parts { return p.insert("1bit", tarEntry(t, tarFile(".DS_Store"), "Bud1")) })
	add("global path", func(p parts) parts {
		return p.insert("1bit", tarEntry(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "1bit-hrx-x/y"}}, ""))
	})
	add("a dot first", func(p parts) parts {
		return slices.Insert(p, 0, part{"", tarEntry(t, tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700}, "")})
	})
	// Sparse files.
	for name, m := range map[string]string{"sparse file": "1\n0\n4\n", "sparse bomb": "2\n0\n1\n1099511627776\n0\n", "sparse overlap": "2\n0\n8\n4\n8\n", "sparse past the end": "2\n0\n8\n1000\n8\n"} {
		records := recordsPart(t, map[string]string{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "1bit-hrx-x/" + server, "GNU.sparse.realsize": "1099511627776"})
		add(name, func(p parts) parts {
			return p.replace(server, records, tarEntry(t, tarFile(server), m+strings.Repeat("\x00", 512-len(m))+"data"))
		})
	}
	// Windows.
	plain := goodParts(t).plain()
	out["window of 144 MiB"] = rawFrame(plain, 17<<3|1)
	out["window of 2 GiB"] = rawFrame(plain, 21<<3)
	out["window of 3.75 GiB"] = rawFrame(plain, 21<<3|7)
	out["one segment of 10 GiB"] = append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0x80, 2, 0, 0, 0}, rawFrame(plain, 0)[6:]...)
	// Colliding names.
	add("twice", func(p parts) parts { return p.insert(server, tarEntry(t, tarFile(server), "other")) })
	add("twice, at the end", func(p parts) parts { return append(p, part{"", p[p.at(server)].raw}) })
	add("manifest twice", func(p parts) parts { return append(p, p[1]) })
	add("alias by dot", func(p parts) parts { return append(p, part{"", tarEntry(t, tarFile("./1bit"), "x")}) })
	add("alias by slashes", func(p parts) parts { return append(p, part{"", tarEntry(t, tarFile("/1bit"), "x")}) })
	add("alias by a slash", func(p parts) parts {
		h := tarFile("1bit/")
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
		return append(p, part{"", tarEntry(t, h, "")})
	})
	add("file, then a folder", func(p parts) parts { return p.replace("hrx/llama", tarEntry(t, tarFile("hrx/llama"), "I am a file")) })
	add("newline", func(p parts) parts { return append(p, part{"", tarEntry(t, tarFile("a\nb"), "x")}) })
	add("escape", func(p parts) parts { return append(p, part{"", tarEntry(t, tarFile("a\x1b]0;owned\a"), "x")}) })
	add("backslash", func(p parts) parts { return append(p, part{"", tarEntry(t, tarFile(`..\..\x`), "x")}) })
	text("manifest with twins by case", `"path": "1bit"`, `"path": "HRX"`)
	text("manifest with a newline", `"path": "1bit"`, `"path": "1\nbit"`)
	text("manifest with an escape", `"path": "1bit"`, `"path": "1\u001b[31mbit"`)
	text("manifest with a path twice", `"path": "hrx/llama/bin/libx.so.1"`, `"path": "hrx/llama/bin/libx.so"`)
	// Numbers, bytes, cuts.
	at := func(name, of string, offset int, text string) {
		add(name, func(p parts) parts { return p.replace(of, spoiled(p[p.at(of)].raw, offset, text)) })
	}
	at("size of 9 GiB", server, 124, "\x80\x00\x00\x00\x00\x00\x00\x02\x40\x00\x00\x00")
	at("negative size", server, 124, strings.Repeat("\xff", 11)+"\x00")
	at("negative time", server, 136, strings.Repeat("\xff", 12))
	at("name in Latin-1", "1bit", 11, "gr\xfc\xdfe")
	at("signed checksum", "1bit", 265, "j\xfcrgen\x00x")
	add("bad checksum", func(p parts) parts { p[p.at("1bit")].raw[148] ^= 1; return p })
	add("2 MiB of records", func(p parts) parts {
		return p.insert("1bit", recordsPart(t, map[string]string{"comment": strings.Repeat("A", 1<<20-100)}))
	})
	text("manifest of 9 GiB", `"size": `, `"size": 966367641`)
	text("manifest of 40 GiB", `"size": `, `"size": 4294967296`)
	out["no end"] = packed(t, plain[:len(plain)-1024])
	out["one block of zeros"] = packed(t, plain[:len(plain)-512])
	out["bytes after the end"] = packed(t, append(bytes.Clone(plain), 'x'))
	out["empty"] = nil
	out["only zeros"] = packed(t, make([]byte, 10240))
	out["a skippable frame"] = append(packed(t, plain), 0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x')
	out["garbage after the frame"] = append(packed(t, plain), "garbage"...)
	// Modes and specials.
	mode := func(name, of, text string) { at(name, of, 100, text) }
	mode("setuid", server, "0006755\x00")
	mode("sticky folder", "hrx", "0003777\x00")
	mode("read-only folder first", "hrx", "0000555\x00")
	mode("folder of mode 0", "hrx", "0000000\x00")
	mode("file of mode 0", server, "0000000\x00")
	mode("mode with a type", server, "0100755\x00")
	for _, flag := range "346Z71S\x00" {
		at(fmt.Sprintf("type %q", flag), "hrx/llama/bin/deep/empty.txt", 156, string(flag))
	}
	return out
}

// around is a store in a folder with other things, of which nothing may change.
func around(t testing.TB) (*Store, func() map[string]string) {
	t.Helper()
	base := t.TempDir()
	s := Open(filepath.Join(base, "home", "share"), filepath.Join(base, "state"))
	s.Proc = filepath.Join(base, "proc")
	for name, content := range map[string]string{"outside/victim": "precious", "victim": "precious", "home/victim": "precious", "proc/x": "x"} {
		write(t, filepath.Join(base, name), content)
	}
	if err := os.Chmod(filepath.Join(base, "home"), 0o750); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writable(s.Dir) })
	return s, func() map[string]string {
		tree := map[string]string{}
		err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if p == s.StateDir || p == s.Dir {
				return fs.SkipDir
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text := info.Mode().String()
			if d.Type().IsRegular() {
				b, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				text += " " + info.ModTime().String() + " " + string(b)
			}
			tree[strings.TrimPrefix(p, base)] = text
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
}

// refuse installs what must not be installed.
func refuse(t *testing.T, s *Store, look func() map[string]string, name string, b []byte) error {
	t.Helper()
	before := look()
	_, _, err := s.Install(context.Background(), write(t, filepath.Join(t.TempDir(), "a.tar.zst"), string(b)), nil)
	if !errors.Is(err, packager.ErrIntegrity) {
		t.Errorf("%s: got %v", name, err)
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("%s: something around was touched: %s", name, diff)
	}
	wantEmptyStaging(t, s)
	wantList(t, s)
	return err
}

// TestHostilePackages has a good package with one hostile thing in it, and
// that thing without the package.
func TestHostilePackages(t *testing.T) {
	s, look := around(t)
	for name, b := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			err := refuse(t, s, look, name, b)
			if err == nil {
				return
			}
			// One line that no terminal acts on.
			if text := err.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) || len(text) > 1500 {
				t.Errorf("the message is %q", text)
			}
		})
	}
	// What the hostile ones were made of is fine.
	if _, _, err := s.Install(context.Background(), write(t, filepath.Join(t.TempDir(), "a.tar.zst"), string(packed(t, goodParts(t).plain()))), nil); err != nil {
		t.Error(err)
	}
	wantList(t, s, "hrx-x ok")
}

// TestOddPackages are those that look odd and mean one thing.
func TestOddPackages(t *testing.T) {
	plain := goodParts(t).plain()
	records := recordsPart(t, map[string]string{"LIBARCHIVE.xattr.com.apple.provenance": "AQIDBA==", "SCHILY.xattr.com.apple.quarantine": "0081;65;X;", "mtime": "1700000000.123456789"})
	comment := tarEntry(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "0123456789abcdef0123456789abcdef01234567"}}, "")
	for name, b := range map[string][]byte{
		"a window of 128 MiB":    rawFrame(plain, 17<<3),
		"several frames":         slices.Concat(packed(t, plain[:700]), packed(t, plain[700:5000]), packed(t, plain[5000:])),
		"records of a Mac":       packed(t, goodParts(t).insert(server, records).plain()),
		"comment of git":         packed(t, append(bytes.Clone(comment), plain...)),
		"uid in base-256":        packed(t, goodParts(t).replace("1bit", spoiled(goodParts(t)[2].raw, 108, "\x80\x00\x00\x00\xee\x6b\x28\x00")).plain()),
		"time in the far":        packed(t, goodParts(t).replace("1bit", spoiled(goodParts(t)[2].raw, 136, "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00")).plain()),
		"owner and date of 1970": packed(t, goodParts(t).replace("1bit", spoiled(goodParts(t)[2].raw, 136, "00000000000\x00")).plain()),
	} {
		s, look := around(t)
		before := look()
		p, _, err := s.Install(context.Background(), write(t, filepath.Join(t.TempDir(), "a.tar.zst"), string(b)), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v, err := s.Verify(context.Background(), p, nil); err != nil || !v.OK {
			t.Errorf("%s: %v, %+v", name, err, v)
		}
		if diff := cmp.Diff(before, look()); diff != "" {
			t.Errorf("%s: something around was touched: %s", name, diff)
		}
		info, err := os.Lstat(filepath.Join(p.Path, "1bit"))
		if err != nil || info.ModTime().Unix() != 1793000000 || info.Mode() != 0o555 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestRawArchives are archives that are no packages at all.
func TestRawArchives(t *testing.T) {
	s, look := around(t)
	plain := goodParts(t)
	for _, q := range plain[1:] {
		refuse(t, s, look, "only "+q.name, packed(t, append(bytes.Clone(q.raw), make([]byte, 1024)...)))
	}
	err := refuse(t, s, look, "an engine", packed(t, append(tarEntry(t, tar.Header{Name: "pkg/bin/llama-server", Typeflag: tar.TypeReg, Mode: 0o755}, "ELF"), make([]byte, 1024)...)))
	if err == nil || !strings.Contains(err.Error(), "not a package") {
		t.Errorf("got %v", err)
	}
}

// TestCutAndFlippedPackages cuts an archive at many bytes and flips a bit of
// them. What is still taken is the package, byte for byte. The reader's own
// test does so at every byte.
func TestCutAndFlippedPackages(t *testing.T) {
	b := packed(t, goodParts(t).plain())
	s, look := around(t)
	before := look()
	file := filepath.Join(t.TempDir(), "a.tar.zst")
	for i := 0; i < len(b); i += 29 {
		write(t, file, string(b[:i]))
		if _, _, err := s.Install(context.Background(), file, nil); !errors.Is(err, packager.ErrIntegrity) || i > 3 && !strings.Contains(err.Error(), "cut off") {
			t.Errorf("cut at %d: %v", i, err)
		}
		flipped := bytes.Clone(b)
		flipped[i] ^= 1 << (i % 8)
		write(t, file, string(flipped))
		p, _, err := s.Install(context.Background(), file, nil)
		if err == nil {
			// A bit that means nothing.
			if v, verr := s.Verify(context.Background(), p, nil); verr != nil || !v.OK {
				t.Errorf("flipped at %d: %+v, %v", i, v, verr)
			}
			if rerr := s.Remove(context.Background(), p, func(context.Context, *Package) ([]string, error) { return nil, nil }); rerr != nil {
				t.Fatal(rerr)
			}
		} else if !errors.Is(err, packager.ErrIntegrity) {
			t.Errorf("flipped at %d: %v", i, err)
		}
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("something around was touched: %s", diff)
	}
	wantEmptyStaging(t, s)
	wantList(t, s)
}

// TestRaisedLimits installs what needs a higher limit. Afterwards it is a
// package like any other, whatever the limits.
func TestRaisedLimits(t *testing.T) {
	m, contents := sample("x", "a")
	level := strings.Repeat("d", 199) + "/"
	long := strings.Repeat(level, 10)
	for i := len(level); i <= len(long); i += len(level) {
		m.Files = append(m.Files, packager.File{Path: long[:i-1], Type: packager.TypeDir, Mode: 0o755})
	}
	slices.SortFunc(m.Files, func(a, b packager.File) int { return strings.Compare(a.Path, b.Path) })
	manifest, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	list := goodParts(t)[:1]
	list = append(list, manifestPart(t, string(manifest)))
	for _, f := range m.Files {
		h := tar.Header{Name: m.DirName() + "/" + f.Path, Typeflag: tar.TypeReg, Mode: int64(f.Mode)}
		switch f.Type {
		case packager.TypeDir:
			h.Name, h.Typeflag = h.Name+"/", tar.TypeDir
		case packager.TypeLink:
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Target, 0o777
		}
		list = append(list, part{f.Path, tarEntry(t, h, contents[f.Path])})
	}
	s, look := around(t)
	b := rawFrame(list.plain(), 17<<3|1)
	refuse(t, s, look, "by default", b)
	s.Limits = packager.Limits{Path: 2000, Window: 144 << 20}
	file := write(t, filepath.Join(t.TempDir(), "a.tar.zst"), string(b))
	if _, _, err := s.Install(context.Background(), file, nil); err != nil {
		t.Fatal(err)
	}
	s.Limits = packager.Limits{}
	wantList(t, s, "hrx-x ok")
	p, err := s.Find(context.Background(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify(context.Background(), p, nil); err != nil || !v.OK {
		t.Errorf("%+v, %v", v, err)
	}
	if err := s.Remove(context.Background(), p, func(context.Context, *Package) ([]string, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	wantList(t, s)
}
