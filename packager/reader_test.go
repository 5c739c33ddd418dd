package packager

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// craft is a tar entry of a hand-made archive.
type craft struct {
	tar.Header
	content string
}

const top = "1bit-hrx-3092596/"

// crafts returns the entries of a good archive.
func crafts(t testing.TB, m *Manifest, contents map[string]string) []craft {
	t.Helper()
	b, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	list := []craft{
		{Header: tar.Header{Typeflag: tar.TypeDir, Name: top, Mode: 0o755}},
		{Header: tar.Header{Typeflag: tar.TypeReg, Name: top + ManifestName, Mode: 0o644, Size: int64(len(b))}, content: string(b)},
	}
	for _, f := range m.Files {
		c := craft{Header: tar.Header{Typeflag: tar.TypeReg, Name: top + f.Path, Mode: int64(f.Mode), Size: f.Size}, content: contents[f.Path]}
		switch f.Type {
		case TypeDir:
			c.Typeflag, c.Name = tar.TypeDir, c.Name+"/"
		case TypeLink:
			c.Typeflag, c.Linkname, c.Mode = tar.TypeSymlink, f.Target, 0o777
		}
		list = append(list, c)
	}
	return list
}

func tarOf(t testing.TB, list []craft) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, c := range list {
		if err := w.WriteHeader(&c.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(c.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func compress(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func TestReaderTakesOtherWritersArchives(t *testing.T) {
	plain := tarOf(t, crafts(t, example(), contents))
	half := len(plain) / 1024 * 512
	comment := craft{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "3092596"}}}
	owner := crafts(t, example(), contents)
	for i := range owner {
		owner[i].Uid, owner[i].Uname, owner[i].ModTime = 4711, "weekly", time.Unix(1, 0)
		owner[i].PAXRecords = map[string]string{
			"LIBARCHIVE.xattr.user.x": "eA", "SCHILY.xattr.user.x": "x", "SCHILY.xattr.security.capability": "\x01\x00\x00\x02",
			"SCHILY.acl.access": "user::rwx,other::rwx", "SCHILY.fflags": "immutable", "VENDOR.unknown": "x", "comment": "x",
		}
	}
	want, err := unpack(t, archiveOf(t, example(), contents))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"one frame":             compress(t, plain),
		"several frames":        slices.Concat(compress(t, plain[:half]), compress(t, plain[half:])),
		"padded as tar does":    compress(t, append(slices.Clone(plain), make([]byte, 10240-len(plain)%10240)...)),
		"a comment":             compress(t, tarOf(t, slices.Insert(crafts(t, example(), contents), 0, comment))),
		"owners, times, xattrs": compress(t, tarOf(t, owner)),
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := unpack(t, b)
			if err != nil {
				t.Fatal(err)
			}
			// What a record beside the manifest asks for is not done.
			if diff := cmp.Diff(want, tree); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExtractAppliesNoRecords asks the file system itself: no attribute of a
// record in the archive is on a file.
func TestExtractAppliesNoRecords(t *testing.T) {
	list := crafts(t, example(), contents)
	for i := range list {
		list[i].PAXRecords = map[string]string{
			"SCHILY.xattr.user.x": "x", "SCHILY.xattr.security.capability": "\x01\x00\x00\x02", "LIBARCHIVE.xattr.user.y": "eA",
		}
	}
	r, err := NewReader(bytes.NewReader(compress(t, tarOf(t, list))), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := r.Extract(context.Background(), root, ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// Let the clean-up of the test delete it.
		if d.IsDir() && name != dir {
			if err := os.Chmod(name, 0o755); err != nil {
				return err
			}
		}
		list := make([]byte, 4096)
		n, err := unix.Llistxattr(name, list)
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
		for _, attr := range strings.Split(string(list[:max(n, 0)]), "\x00") {
			if strings.HasPrefix(attr, "user.") || attr == "security.capability" {
				t.Errorf("%s has %s", name, attr)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReaderRefuses(t *testing.T) {
	find := func(list []craft, path string) int {
		i := slices.IndexFunc(list, func(c craft) bool { return c.Name == top+path })
		if i < 0 {
			t.Fatalf("no %s", path)
		}
		return i
	}
	changes := map[string]func([]craft) []craft{
		"no top folder":    func(l []craft) []craft { return l[1:] },
		"no manifest":      func(l []craft) []craft { return slices.Delete(l, 1, 2) },
		"manifest later":   func(l []craft) []craft { l[1], l[2] = l[2], l[1]; return l },
		"only the top":     func(l []craft) []craft { return l[:1] },
		"nothing":          func(l []craft) []craft { return nil },
		"other top folder": func(l []craft) []craft { l[0].Name = "1bit-hrx-0000000/"; return l },
		"top a file":       func(l []craft) []craft { l[0].Typeflag, l[0].Name = tar.TypeReg, "1bit-hrx-3092596"; return l },
		"top mode":         func(l []craft) []craft { l[0].Mode = 0o777; return l },
		"dot first": func(l []craft) []craft {
			return slices.Insert(l, 0, craft{Header: tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700}})
		},
		"dot in front": func(l []craft) []craft { l[2].Name = "./" + l[2].Name; return l },
		"another order": func(l []craft) []craft {
			n := len(l)
			l[n-1], l[n-2] = l[n-2], l[n-1]
			return l
		},
		"an entry missing": func(l []craft) []craft { i := find(l, "1bit"); return slices.Delete(l, i, i+1) },
		"the last missing": func(l []craft) []craft { return l[:len(l)-1] },
		"an entry twice":   func(l []craft) []craft { i := find(l, "1bit"); return slices.Insert(l, i, l[i]) },
		"the last twice":   func(l []craft) []craft { return append(l, l[len(l)-1]) },
		"one more": func(l []craft) []craft {
			return append(l, craft{Header: tar.Header{Typeflag: tar.TypeReg, Name: top + "z", Mode: 0o644}})
		},
		"one more outside": func(l []craft) []craft {
			return append(l, craft{Header: tar.Header{Typeflag: tar.TypeReg, Name: "../z", Mode: 0o644}})
		},
		"manifest again":  func(l []craft) []craft { return append(l, l[1]) },
		"another name":    func(l []craft) []craft { i := find(l, "1bit"); l[i].Name = top + "../../x"; return l },
		"an alias":        func(l []craft) []craft { i := find(l, "1bit"); l[i].Name = top + "/1bit"; return l },
		"another mode":    func(l []craft) []craft { i := find(l, "1bit"); l[i].Mode = 0o644; return l },
		"setuid":          func(l []craft) []craft { i := find(l, "1bit"); l[i].Mode = 0o4755; return l },
		"mode with type":  func(l []craft) []craft { i := find(l, "1bit"); l[i].Mode = 0o100755; return l },
		"another content": func(l []craft) []craft { i := find(l, "1bit"); l[i].content = "front eND"; return l },
		"another size":    func(l []craft) []craft { i := find(l, "1bit"); l[i].content, l[i].Size = "front", 5; return l },
		"hard link": func(l []craft) []craft {
			i := find(l, "1bit")
			l[i] = craft{Header: tar.Header{Typeflag: tar.TypeLink, Name: top + "1bit", Linkname: "/etc/passwd", Mode: 0o755}}
			return l
		},
		"link for a file": func(l []craft) []craft {
			i := find(l, "1bit")
			l[i] = craft{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: top + "1bit", Linkname: "/etc/passwd", Mode: 0o777}}
			return l
		},
		"device": func(l []craft) []craft {
			i := find(l, "1bit")
			l[i] = craft{Header: tar.Header{Typeflag: tar.TypeChar, Name: top + "1bit", Mode: 0o755, Devmajor: 1, Devminor: 3}}
			return l
		},
		"pipe": func(l []craft) []craft {
			i := find(l, "1bit")
			l[i] = craft{Header: tar.Header{Typeflag: tar.TypeFifo, Name: top + "1bit", Mode: 0o755}}
			return l
		},
		"unknown type": func(l []craft) []craft { i := find(l, "naïve name"); l[i].Typeflag = 'Z'; return l },
		"another target": func(l []craft) []craft {
			i := find(l, "hrx/llama/bin/libx.so")
			l[i].Linkname = "/etc/passwd"
			return l
		},
		"file for a folder": func(l []craft) []craft {
			i := find(l, "hrx/")
			l[i].Typeflag, l[i].Name = tar.TypeReg, top+"hrx"
			return l
		},
		"global path": func(l []craft) []craft {
			return slices.Insert(l, 2, craft{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"path": "../x"}}})
		},
		"global header last": func(l []craft) []craft {
			return append(l, craft{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"mtime": "1"}}})
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			b := compress(t, tarOf(t, change(crafts(t, example(), contents))))
			if _, err := unpack(t, b); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReaderRefusesManifests(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"invalid":            func(m *Manifest) { m.Files[7].Path = "../x" },
		"imported":           func(m *Manifest) { m.Imported = true },
		"of another package": func(m *Manifest) { m.ID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			m := example()
			change(m)
			b := compress(t, tarOf(t, crafts(t, m, contents)))
			if _, err := unpack(t, b); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReaderRefusesStreams(t *testing.T) {
	good := archiveOf(t, example(), contents)
	plain := tarOf(t, crafts(t, example(), contents))
	zeros := func(n int) []byte { return make([]byte, n) }
	skippable := func(magic byte, content string) []byte {
		return slices.Concat([]byte{magic, 0x2a, 0x4d, 0x18, byte(len(content)), 0, 0, 0}, []byte(content))
	}
	half := len(plain) / 1024 * 512
	cases := map[string][]byte{
		"empty":                       nil,
		"no zstd":                     plain,
		"text":                        []byte("<!DOCTYPE html><html>not found</html>"),
		"empty frame":                 compress(t, nil),
		"only zeros":                  compress(t, zeros(10240)),
		"no end blocks":               compress(t, plain[:len(plain)-1024]),
		"one end block":               compress(t, plain[:len(plain)-512]),
		"half an end block":           compress(t, plain[:len(plain)-100]),
		"cut in the tar":              compress(t, plain[:len(plain)/2]),
		"bytes after the end":         compress(t, append(slices.Clone(plain), 'x')),
		"zeros then bytes":            compress(t, slices.Concat(plain, zeros(512), []byte("x"))),
		"an archive after the end":    compress(t, slices.Concat(plain, plain)),
		"a frame after the end":       slices.Concat(good, compress(t, []byte("x"))),
		"bytes after the frame":       append(slices.Clone(good), "garbage"...),
		"one byte after the frame":    append(slices.Clone(good), 0),
		"a bomb after the end":        compress(t, slices.Concat(plain, zeros(64<<20))),
		"a skippable frame first":     slices.Concat(skippable(0x50, "abc"), good),
		"a skippable frame last":      slices.Concat(good, skippable(0x5f, "abc")),
		"a skippable frame, empty":    slices.Concat(good, skippable(0x50, "")),
		"a skippable frame between":   slices.Concat(compress(t, plain[:half]), skippable(0x51, "abc"), compress(t, plain[half:])),
		"a cut skippable frame last":  slices.Concat(good, skippable(0x5f, "abc")[:9]),
		"window of 144 MiB":           frame(t, 0x08|17<<3|1),
		"window of 2 GiB":             frame(t, 21<<3),
		"window of 3.75 GiB":          frame(t, 21<<3|7),
		"one segment of 10 GiB":       {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0x80, 2, 0, 0, 0, 1, 0, 0},
		"second frame's window":       slices.Concat(compress(t, plain[:1024]), frame(t, 21<<3)),
		"header claims a huge file":   compress(t, hugeHeader(t)),
		"content checksum flipped":    flip(good, len(good)-1),
		"a bit flipped in the middle": flip(good, len(good)/2),
	}
	for n := 1; n < len(good); n += 37 {
		cases["cut at "+string(rune('0'+n%10))+"/"+time.Duration(n).String()] = good[:n]
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := unpack(t, b); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// frame is a zstd frame with that window descriptor and one raw byte.
func frame(t testing.TB, window byte) []byte {
	t.Helper()
	return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window, 9, 0, 0, 'x', 0, 0, 0, 0, 0, 0, 0}
}

func flip(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i] ^= 0x10
	return b
}

// hugeHeader begins an archive whose manifest claims to have 1 TiB.
func hugeHeader(t testing.TB) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: top, Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: top + ManifestName, Mode: 0o644, Size: 1 << 40},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

func TestWindowErrorNamesSizes(t *testing.T) {
	_, err := NewReader(bytes.NewReader(frame(t, 21<<3)), Limits{})
	if err == nil || !strings.Contains(err.Error(), "2048 MiB, limit 128 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestReadManifest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.tar.zst")
	b := archiveOf(t, example(), contents)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(context.Background(), name, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), m); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadManifest(context.Background(), filepath.Dir(name), Limits{}); err == nil || errors.Is(err, ErrIntegrity) {
		t.Errorf("a folder gives %v", err)
	}
	if _, err := ReadManifest(context.Background(), name+"x", Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}
