package packager

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// compressible is content of words, as random as prose, of n bytes.
func compressible(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("kernel barrier wave slot output split decode arena range guard logits fused writer reader")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(byte(r.IntN(256)))
	}
	return b.String()[:n]
}

func levelArchive(t *testing.T, l Level, content string) []byte {
	t.Helper()
	m := &Manifest{Schema: Schema, Flavour: "hrx", ID: "1", Files: []File{file("a", content)}}
	var buf bytes.Buffer
	err := WriteArchive(context.Background(), &buf, m, opener(map[string]string{"a": content}), ArchiveOptions{Level: l})
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestLevels(t *testing.T) {
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Fatal("the tests need zstd(1): run internal/demo/setup.sh")
	}
	content := compressible(1 << 20)
	sizes := map[Level]int{}
	for _, l := range append(Levels(), "") {
		b := levelArchive(t, l, content)
		if !bytes.Equal(b, levelArchive(t, l, content)) {
			t.Errorf("level %q: two archives of the same content differ", l)
		}
		var h zstd.Header
		if err := h.Decode(b); err != nil || h.WindowSize > MaxWindow {
			t.Errorf("level %q: window %d, %v", l, h.WindowSize, err)
		}
		if _, err := unpack(t, b); err != nil {
			t.Errorf("level %q: %v", l, err)
		}
		sizes[l] = len(b)
	}
	if sizes[LevelFast] <= sizes[LevelDefault] || sizes[LevelFast] <= sizes[LevelBest] || sizes[""] != sizes[LevelDefault] {
		t.Errorf("sizes %v", sizes)
	}
}

func TestLevelUnknown(t *testing.T) {
	err := WriteArchive(context.Background(), &bytes.Buffer{}, example(), opener(contents), ArchiveOptions{Level: "ultra"})
	if err == nil {
		t.Error("level ultra was taken")
	}
}

func TestLevelBestWithoutItsProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := WriteArchive(context.Background(), &bytes.Buffer{}, example(), opener(contents), ArchiveOptions{Level: LevelBest})
	if !errors.Is(err, ErrNoCompressor) {
		t.Errorf("got %v", err)
	}
}

// full is a file system with no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestLevelsReportAFullDisk(t *testing.T) {
	content := compressible(1 << 20)
	m := &Manifest{Schema: Schema, Flavour: "hrx", ID: "1", Files: []File{file("a", content)}}
	for _, l := range Levels() {
		err := WriteArchive(context.Background(), full{}, m, opener(map[string]string{"a": content}), ArchiveOptions{Level: l})
		if err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("level %q: got %v", l, err)
		}
	}
}
