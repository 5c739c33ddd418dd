package doctor_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
)

// serverPath is where a package keeps its server.
const serverPath = "hrx/llama/bin/llama-server"

// pack writes the archive of a package whose server sleeps, and returns its path outside. alter changes its manifest.
func pack(t testing.TB, id string, alter ...func(m *packager.Manifest)) string {
	t.Helper()
	contents := map[string]string{
		"1bit":     "#!/bin/sh\nexec \"$ONEBIT_LLAMA_SERVER\" \"$@\"\n",
		serverPath: "#!/bin/sh\n# " + id + "\nexec sleep infinity\n",
	}
	m := &packager.Manifest{
		Schema: packager.Schema, Flavour: "hrx", ID: id, SourceDateEpoch: 1790000000,
		Components:  []packager.Component{{Name: "engine", Commit: strings.Repeat(id, 40/len(id)+1)[:40]}},
		EntryPoints: map[string]string{"1bit": "1bit", "llama-server": serverPath},
	}
	for name, content := range contents {
		sum := sha256.Sum256([]byte(content))
		m.Files = append(m.Files, packager.File{Path: name, Type: packager.TypeFile, Mode: 0o755, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
	}
	for dir := path.Dir(serverPath); dir != "."; dir = path.Dir(dir) {
		m.Files = append(m.Files, packager.File{Path: dir, Type: packager.TypeDir, Mode: 0o755})
	}
	slices.SortFunc(m.Files, func(a, b packager.File) int { return strings.Compare(a.Path, b.Path) })
	for _, change := range alter {
		change(m)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), m.DirName()+".tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	err = packager.WriteArchive(context.Background(), file, m, func(f *packager.File) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(contents[f.Path])), nil
	}, packager.ArchiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
