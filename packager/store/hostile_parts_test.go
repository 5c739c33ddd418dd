package store

import (
	"archive/tar"
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/1bit-systems/pkg/packager"
)

// goodParts are those of the sample package.
func goodParts(t testing.TB) parts {
	t.Helper()
	m, contents := sample("x", "a")
	manifest, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	top := m.DirName() + "/"
	list := parts{{"", tarEntry(t, tar.Header{Name: top, Typeflag: tar.TypeDir, Mode: 0o755}, "")}, manifestPart(t, string(manifest))}
	for _, f := range m.Files {
		h := tar.Header{Name: top + f.Path, Typeflag: tar.TypeReg, Mode: int64(f.Mode)}
		switch f.Type {
		case packager.TypeDir:
			h.Name, h.Typeflag = h.Name+"/", tar.TypeDir
		case packager.TypeLink:
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Target, 0o777
		}
		list = append(list, part{f.Path, tarEntry(t, h, contents[f.Path])})
	}
	return list
}

func manifestPart(t testing.TB, manifest string) part {
	return part{packager.ManifestName, tarEntry(t, tar.Header{Name: "1bit-hrx-x/" + packager.ManifestName, Typeflag: tar.TypeReg, Mode: 0o644}, manifest)}
}

// tarEntry is one entry as Go writes it.
func tarEntry(t testing.TB, h tar.Header, content string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if h.Typeflag != tar.TypeXGlobalHeader {
		h.Size = int64(len(content))
		h.ModTime = time.Unix(1793000000, 0)
	}
	if err := w.WriteHeader(&h); err != nil {
		t.Fatalf("%s: %v", h.Name, err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func tarFile(name string) tar.Header {
	return tar.Header{Name: "1bit-hrx-x/" + name, Typeflag: tar.TypeReg, Mode: 0o644}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Name: "1bit-hrx-x/" + name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}
}

// spoiled is an entry whose header was changed afterwards.
func spoiled(b []byte, at int, text string) []byte {
	b = bytes.Clone(b)
	copy(b[at:], text)
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func (p parts) at(name string) int {
	return slices.IndexFunc(p, func(q part) bool { return q.name == name })
}

func (p parts) insert(name string, raw ...[]byte) parts {
	return slices.Insert(p, p.at(name), part{"inserted", slices.Concat(raw...)})
}

func (p parts) replace(name string, raw ...[]byte) parts {
	p[p.at(name)].raw = slices.Concat(raw...)
	return p
}

func (p parts) plain() []byte {
	var b []byte
	for _, q := range p {
		b = append(b, q.raw...)
	}
	return append(b, make([]byte, 1024)...)
}

func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// rawFrame holds b uncompressed in a zstd frame with that window.
func rawFrame(b []byte, window byte) []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}
	for {
		n := min(len(b), 1<<16)
		h := uint32(n) << 3
		if n == len(b) {
			h |= 1
		}
		out = append(append(out, byte(h), byte(h>>8), byte(h>>16)), b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return out
		}
	}
}

func recordsPart(t testing.TB, records map[string]string) []byte {
	t.Helper()
	var content string
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range records {
			if !yield(k) {
				return
			}
		}
	}) {
		n := len(key) + len(records[key]) + 3
		for len(fmt.Sprint(n))+len(key)+len(records[key])+3 != n {
			n++
		}
		content += fmt.Sprintf("%d %s=%s\n", n, key, records[key])
	}
	return spoiled(tarEntry(t, tar.Header{Name: "records", Typeflag: tar.TypeReg, Mode: 0o644}, content), 156, "x")
}
