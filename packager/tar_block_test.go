package packager

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// raw is a tar header as a program without scruples writes it: each option
// spoils one field.
func raw(name string, flag byte, size int64, spoil ...func(h []byte)) []byte {
	h := make([]byte, tarBlock)
	copy(h, name)
	copy(h[100:], "0000644\x000000000\x000000000\x00")
	copy(h[124:], fmt.Sprintf("%011o\x00%011o\x00", size, 1))
	h[156] = flag
	copy(h[257:], "ustar\x0000")
	copy(h[329:], "0000000\x000000000\x00")
	for _, f := range spoil {
		f(h)
	}
	if !bytes.Equal(h[148:156], make([]byte, 8)) {
		return h // it has its own checksum
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sumOf(h, false)))
	return h
}

func sumOf(h []byte, signed bool) (sum int) {
	for i, c := range h {
		switch {
		case i >= 148 && i < 156:
			sum += ' '
		case signed:
			sum += int(int8(c))
		default:
			sum += int(c)
		}
	}
	return sum
}

func set(at int, text string) func([]byte) { return func(h []byte) { copy(h[at:], text) } }

func padded(s string) []byte { return append([]byte(s), make([]byte, -len(s)&(tarBlock-1))...) }

func record(key, value string) string {
	n := len(key) + len(value) + 3
	for len(strconv.Itoa(n))+len(key)+len(value)+3 != n {
		n++
	}
	return fmt.Sprintf("%d %s=%s\n", n, key, value)
}

// described is a header of that type with its content.
func described(flag byte, content string) []byte {
	return slices.Concat(raw("described", flag, int64(len(content))), padded(content))
}

var (
	endBlocks = make([]byte, 2*tarBlock)
	oneFile   = slices.Concat(raw("a", '0', 2), padded("a\n"))
	gnu       = set(257, "ustar  \x00")
)

// lenient are archives that Go's reader takes, and another reader would take
// for something else.
var lenient = map[string][]byte{
	"signed checksum": slices.Concat(raw("\xff\xff", '0', 0, func(h []byte) {
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sumOf(h, true)))
	}), endBlocks),
	"checksum with blanks": slices.Concat(raw("a", '0', 0, func(h []byte) {
		copy(h[148:], fmt.Sprintf("  %05o\x00", sumOf(h, false)))
	}), endBlocks),
	"size with blanks":         slices.Concat(raw("a", '0', 2, set(124, "          2\x00")), padded("a\n"), endBlocks),
	"size after zero bytes":    slices.Concat(raw("a", '0', 2, set(124, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x002\x00")), padded("a\n"), endBlocks),
	"bytes after a size":       slices.Concat(raw("a", '0', 2, set(124, "2\x0077777777\x00")), padded("a\n"), endBlocks),
	"no size":                  slices.Concat(raw("a", '0', 0, set(124, "            ")), endBlocks),
	"negative mode":            slices.Concat(raw("a", '0', 0, set(100, "\xff\xff\xff\xff\xff\xff\xff\xff")), endBlocks),
	"negative time":            slices.Concat(raw("a", '0', 0, set(136, strings.Repeat("\xff", 12))), endBlocks),
	"negative size of a dir":   slices.Concat(raw("a/", '5', 0, set(124, strings.Repeat("\xff", 12))), endBlocks),
	"high bits of a base-256":  slices.Concat(raw("a", '0', 0, set(108, "\xbf\x00\x00\x00\x00\x00\x00\x01")), endBlocks),
	"no magic":                 slices.Concat(raw("a", '0', 2, set(257, "\x00\x00\x00\x00\x00\x00\x00\x00")), padded("a\n"), endBlocks),
	"another version":          slices.Concat(raw("a", '0', 2, set(263, "99")), padded("a\n"), endBlocks),
	"star":                     slices.Concat(raw("a", '0', 2, set(508, "tar\x00")), padded("a\n"), endBlocks),
	"GNU with a prefix":        slices.Concat(raw("a", '0', 2, gnu, set(345, "prefix")), padded("a\n"), endBlocks),
	"GNU with a sparse map":    slices.Concat(raw("a", '0', 2, gnu, set(386, "00000000001\x00")), padded("a\n"), endBlocks),
	"bytes after a name":       slices.Concat(raw("a\x00hidden", '0', 2), padded("a\n"), endBlocks),
	"bytes after a link name":  slices.Concat(raw("a", '2', 0, set(157, "b\x00hidden")), endBlocks),
	"bytes after a prefix":     slices.Concat(raw("a", '0', 2, set(345, "b\x00hidden")), padded("a\n"), endBlocks),
	"bytes after a user":       slices.Concat(raw("a", '0', 2, set(265, "b\x00hidden")), padded("a\n"), endBlocks),
	"bytes after the header":   slices.Concat(raw("a", '0', 2, set(502, "hidden")), padded("a\n"), endBlocks),
	"old type":                 slices.Concat(raw("a", 0, 2), padded("a\n"), endBlocks),
	"old type of a dir":        slices.Concat(raw("a/", 0, 0), endBlocks),
	"hard link":                slices.Concat(raw("a", '1', 0, set(157, "b")), endBlocks),
	"device":                   slices.Concat(raw("a", '3', 0), endBlocks),
	"pipe":                     slices.Concat(raw("a", '6', 0), endBlocks),
	"contiguous":               slices.Concat(raw("a", '7', 2), padded("a\n"), endBlocks),
	"unknown type":             slices.Concat(raw("a", 'Z', 2), padded("a\n"), endBlocks),
	"Solaris records":          slices.Concat(raw("a", 'X', 12), padded(record("path", "b")), oneFile, endBlocks),
	"size of a link":           slices.Concat(raw("a", '2', 512, set(157, "b")), oneFile, endBlocks),
	"size of a dir":            slices.Concat(raw("a/", '5', 512), oneFile, endBlocks),
	"records twice":            slices.Concat(described('x', record("mtime", "1")), described('x', record("mtime", "2")), oneFile, endBlocks),
	"long name twice":          slices.Concat(described('L', strings.Repeat("b", 101)+"\x00"), described('L', strings.Repeat("c", 101)+"\x00"), oneFile, endBlocks),
	"long link twice":          slices.Concat(described('K', strings.Repeat("b", 101)+"\x00"), described('K', strings.Repeat("c", 101)+"\x00"), raw("a", '2', 0, set(157, "b")), endBlocks),
	"records and a long name":  slices.Concat(described('x', record("path", strings.Repeat("b", 101))), described('L', strings.Repeat("c", 101)+"\x00"), oneFile, endBlocks),
	"long name of a short one": slices.Concat(described('L', "b\x00"), oneFile, endBlocks),
	"long name with an end":    slices.Concat(described('L', strings.Repeat("b", 101)+"\x00hidden"), oneFile, endBlocks),
	"global between":           slices.Concat(described('x', record("path", strings.Repeat("b", 101))), described('g', record("comment", "x")), oneFile, endBlocks),
	"global path":              slices.Concat(described('g', record("path", "b")), oneFile, endBlocks),
	"global GNU.sparse":        slices.Concat(described('g', record("GNU.sparse.name", "b")), oneFile, endBlocks),
	"key twice":                slices.Concat(described('x', record("path", strings.Repeat("b", 101))+record("path", strings.Repeat("c", 101))), oneFile, endBlocks),
	"length with a plus":       slices.Concat(described('x', "+12 mtime=1\n"), oneFile, endBlocks),
	"length with a zero":       slices.Concat(described('x', "012 mtime=1\n"), oneFile, endBlocks),
	"control in a value":       slices.Concat(described('x', record("comment", "a\x1b[31m\n7 a=b")), oneFile, endBlocks),
	"empty path":               slices.Concat(described('x', record("path", "")), oneFile, endBlocks),
	"path of a short one":      slices.Concat(described('x', record("path", "b")), oneFile, endBlocks),
	"linkpath of a short one":  slices.Concat(described('x', record("linkpath", "b")), raw("a", '2', 0, set(157, "c")), endBlocks),
	"size of a small one":      slices.Concat(described('x', record("size", "2")), raw("a", '0', 0), padded("a\n"), endBlocks),
	"size smaller":             slices.Concat(described('x', record("size", "2")), raw("a", '0', 1024), padded("a\n"), endBlocks),
	"size with a plus":         slices.Concat(described('x', record("size", "+2")), raw("a", '0', 2), padded("a\n"), endBlocks),
	"size of a dir by record":  slices.Concat(described('x', record("size", "512")), raw("a/", '5', 0), oneFile, endBlocks),
	"sparse": slices.Concat(described('x', record("GNU.sparse.major", "1")+record("GNU.sparse.minor", "0")+record("GNU.sparse.name", "b")+record("GNU.sparse.realsize", "1099511627776")),
		raw("a", '0', 1024), padded("2\n0\n1\n1099511627776\n0\n"), padded("x"), endBlocks),
	"sparse, unknown version": slices.Concat(described('x', record("GNU.sparse.major", "9")), oneFile, endBlocks),
	"hidden in the padding":   slices.Concat(raw("a", '0', 2), padded("a\nhidden"), endBlocks),
	"records' padding":        slices.Concat(raw("x", 'x', int64(len(record("mtime", "1")))), padded(record("mtime", "1")+"hidden"), oneFile, endBlocks),
	"no end":                  oneFile,
	"cut padding":             oneFile[:700],
	"one block of zeros":      slices.Concat(oneFile, endBlocks[:tarBlock]),
	"bytes after the end":     slices.Concat(oneFile, endBlocks, []byte("hidden")),
	"an archive after it":     slices.Concat(oneFile, endBlocks, oneFile, endBlocks),
	"nothing":                 nil,
}

// refusedByGo are those that Go's reader refuses too.
var refusedByGo = map[string][]byte{
	"wrong checksum":         slices.Concat(raw("a", '0', 0, set(148, "0000001\x00")), endBlocks),
	"negative size":          slices.Concat(raw("a", '0', 0, set(124, strings.Repeat("\xff", 12))), endBlocks),
	"zeros, then a header":   slices.Concat(endBlocks[:tarBlock], oneFile, endBlocks),
	"length too long":        slices.Concat(described('x', "99 mtime=1\n"), oneFile, endBlocks),
	"length too short":       slices.Concat(described('x', "10 mtime=1\n"), oneFile, endBlocks),
	"path with a NUL":        slices.Concat(described('x', record("path", "a\x00b")), oneFile, endBlocks),
	"records of 2 MiB":       slices.Concat(described('x', record("comment", strings.Repeat("A", 2<<20))), oneFile, endBlocks),
	"cut header":             oneFile[:100],
	"cut content":            oneFile[:513],
	"records, then no entry": slices.Concat(described('x', record("mtime", "1")), endBlocks[:tarBlock], oneFile, endBlocks),
}

// entriesOf reads an archive to its end as Go does.
func entriesOf(r io.Reader) (list []string, err error) {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		// A bomb is as long as it says: no more than a little of it is read.
		content, err := io.ReadAll(io.LimitReader(tr, 1<<20))
		if err != nil {
			return list, err
		}
		list = append(list, fmt.Sprintf("%c %q %q %d %o %q", h.Typeflag, h.Name, h.Linkname, h.Size, h.Mode, content))
	}
}

// strictEntries reads it as a package's reader does.
func strictEntries(b []byte) (list []string, blocks *tarBlocks, err error) {
	blocks = &tarBlocks{r: bytes.NewReader(b)}
	if list, err = entriesOf(blocks); err == nil {
		_, err = io.Copy(io.Discard, blocks)
	}
	if err == nil && !blocks.ended() {
		err = io.ErrUnexpectedEOF
	}
	return list, blocks, err
}

func TestTarBlocksRefuseWhatGoTakes(t *testing.T) {
	for name, b := range lenient {
		if _, err := entriesOf(bytes.NewReader(b)); err != nil {
			t.Errorf("%s: Go refuses it by itself: %v", name, err)
		}
		if list, _, err := strictEntries(b); err == nil {
			t.Errorf("%s: taken as %v", name, list)
		}
	}
	for name, b := range refusedByGo {
		if _, err := entriesOf(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: Go takes it", name)
		}
		if list, _, err := strictEntries(b); err == nil {
			t.Errorf("%s: taken as %v", name, list)
		}
	}
}

// taken are odd archives with one meaning.
var taken = map[string][]byte{
	"one file":            slices.Concat(oneFile, endBlocks),
	"GNU":                 slices.Concat(raw("a", '0', 2, gnu), padded("a\n"), endBlocks),
	"GNU with times":      slices.Concat(raw("a", '0', 2, gnu, set(345, "00000000001\x0000000000001\x00")), padded("a\n"), endBlocks),
	"base-256":            slices.Concat(raw("a", '0', 2, set(124, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"), set(108, "\x80\x00\x00\x00\xee\x6b\x28\x00")), padded("a\n"), endBlocks),
	"octal without end":   slices.Concat(raw("a", '0', 2, set(124, "000000000002")), padded("a\n"), endBlocks),
	"no device numbers":   slices.Concat(raw("a", '0', 2, set(329, strings.Repeat("\x00", 16))), padded("a\n"), endBlocks),
	"prefix":              slices.Concat(raw("a", '0', 2, set(345, strings.Repeat("p", 155))), padded("a\n"), endBlocks),
	"comment":             slices.Concat(described('g', record("comment", "0123456789abcdef0123456789abcdef01234567")), oneFile, endBlocks),
	"attributes":          slices.Concat(described('x', record("SCHILY.xattr.security.capability", "\x01\x00\x00\x02\n")+record("LIBARCHIVE.xattr.com.apple.provenance", "AQIDBA==")+record("mtime", "1.5")), oneFile, endBlocks),
	"long names":          slices.Concat(described('K', strings.Repeat("k", 200)+"\x00"), described('L', strings.Repeat("l", 200)+"\x00"), raw(strings.Repeat("l", 100), '2', 0, gnu, set(157, strings.Repeat("k", 100))), endBlocks),
	"path by record":      slices.Concat(described('x', record("path", strings.Repeat("l", 200))), raw(strings.Repeat("l", 100), '0', 2), padded("a\n"), endBlocks),
	"path in other bytes": slices.Concat(described('x', record("path", "naïve")), raw("nave", '0', 2), padded("a\n"), endBlocks),
	"zeros after the end": slices.Concat(oneFile, endBlocks, endBlocks, endBlocks),
	"nothing but an end":  endBlocks,
}

func TestTarBlocksTake(t *testing.T) {
	for name, b := range taken {
		want, err := entriesOf(bytes.NewReader(b))
		if err != nil {
			t.Errorf("%s: Go: %v", name, err)
		}
		for part, r := range map[string]io.Reader{"whole": bytes.NewReader(b), "byte by byte": iotest.OneByteReader(bytes.NewReader(b))} {
			blocks := &tarBlocks{r: r}
			got, err := entriesOf(blocks)
			if err == nil {
				_, err = io.Copy(io.Discard, blocks)
			}
			if diff := cmp.Diff(want, got); err != nil || !blocks.ended() || diff != "" {
				t.Errorf("%s, %s: %v %s", name, part, err, diff)
			}
		}
	}
	// A size that has no room in the header.
	for name, own := range map[string]func([]byte){"none": set(124, "00000000000\x00"), "the most": set(124, "77777777777\x00")} {
		b := slices.Concat(described('x', record("size", "9663676416")), raw("a", '0', 0, own))
		blocks := &tarBlocks{r: bytes.NewReader(b)}
		h, err := tar.NewReader(blocks).Next()
		if err != nil || h.Size != 9<<30 || blocks.skip != 9<<30 {
			t.Errorf("%s: %v, %d to skip, %v", name, h, blocks.skip, err)
		}
	}
}

// TestTarPrograms packs a good package again with the programs that people
// have, in every format that they write. What comes out is the same package.
func TestTarPrograms(t *testing.T) {
	m, texts := example(), map[string]string{}
	long := strings.Repeat("long/", 25) + "name of a file that is longer than a header has room for, by far and with some é"
	for i := range 25 {
		m.Files = append(m.Files, File{Path: strings.TrimSuffix(strings.Repeat("long/", i+1), "/"), Type: TypeDir, Mode: 0o755})
	}
	m.Files = append(m.Files, File{Path: long, Type: TypeFile, Mode: 0o644, Size: 4, SHA256: sha("long")}, File{Path: "to", Type: TypeLink, Target: long})
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for k, v := range contents {
		texts[k] = v
	}
	texts[long] = "long"
	want, err := unpack(t, archiveOf(t, m, texts))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	entries := []string{top[:len(top)-1], top + ManifestName}
	manifest, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, top), 0o755); err != nil {
		t.Fatal(err)
	}
	writeRaw(t, filepath.Join(dir, top, ManifestName), string(manifest), 0o644)
	for _, f := range m.Files {
		name := filepath.Join(dir, top, f.Path)
		entries = append(entries, top+f.Path)
		switch f.Type {
		case TypeDir:
			err = os.Mkdir(name, 0o755)
		case TypeLink:
			err = os.Symlink(f.Target, name)
		default:
			writeRaw(t, name, texts[f.Path], os.FileMode(f.Mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list := filepath.Join(dir, "list")
	writeRaw(t, list, strings.Join(entries, "\n")+"\n", 0o644)
	for _, program := range [][]string{
		{"tar", "--format=gnu"}, {"tar", "--format=posix"}, {"tar", "--format=posix", "--xattrs", "--acls"},
		{"bsdtar", "--format=pax"}, {"bsdtar", "--format=gnutar"},
	} {
		t.Run(strings.Join(program, " "), func(t *testing.T) {
			if _, err := exec.LookPath(program[0]); err != nil {
				if os.Getenv("ONEBIT_CI") != "" {
					t.Fatal(err)
				}
				t.Skipf("no %s: run internal/demo/setup.sh", program[0])
			}
			args := append(program[1:], "-C", dir, "-cf", "-", "-n", "-T", list)
			if program[0] == "tar" {
				args = append(slices.Clone(program[1:]), "-C", dir, "--no-recursion", "-cf", "-", "-T", list)
			}
			cmd := exec.Command(program[0], args...)
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			b, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			got, err := unpack(t, compress(t, b))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func writeRaw(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// FuzzTarBlocks holds what gets through to two things: Go reads the same from
// it with and without the blocks' checks, and has as many entries as these
// counted.
func FuzzTarBlocks(f *testing.F) {
	for _, seeds := range []map[string][]byte{lenient, refusedByGo, taken} {
		for _, b := range seeds {
			if len(b) < 1<<16 {
				f.Add(b, true)
			}
		}
	}
	f.Add(tarOf(f, crafts(f, example(), contents)), false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend { // or no mutation would get behind the checksum
			b = mended(b)
		}
		got, blocks, err := strictEntries(b)
		if err != nil {
			return
		}
		want, err := entriesOf(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("taken, and refused by Go: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		files := 0
		for _, e := range got {
			if e[0] != 'g' {
				files++
			}
		}
		if files != blocks.entries {
			t.Fatalf("Go sees %d entries, the blocks %d", files, blocks.entries)
		}
	})
}

// mended is the archive with the checksums that its headers should have.
func mended(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 0; i+tarBlock <= len(b); i += tarBlock {
		if h := b[i : i+tarBlock]; bytes.HasPrefix(h[257:], []byte("ustar")) {
			copy(h[148:], fmt.Sprintf("%06o\x00 ", sumOf(h, false)))
		}
	}
	return b
}
