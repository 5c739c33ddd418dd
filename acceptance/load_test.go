package acceptance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/1bit-systems/pkg/engine"
)

// What came of a broken answer is evidence of the fault that it is.
func TestCutAnswerIsKept(t *testing.T) {
	p := fakePackage(t, "works")
	l := begun(t, RunOptions{Plan: fakePlan(t, p, "", ""), Package: p})
	long := bytes.Repeat([]byte("x"), 3*cutShare)
	copy(long, "begin")
	copy(long[len(long)-3:], "end")
	cut := func(raw []byte) error { return errors.Join(&engine.CutError{Status: 200, Raw: raw, Err: os.ErrClosed}) }
	l.keepCut(prompt{ID: 7}, cut([]byte(`{"content": "a`)))
	l.keepCut(prompt{ID: 8}, cut(long))
	l.keepCut(prompt{ID: -1, Sentinel: 2}, cut([]byte("b")))
	l.keepCut(prompt{ID: 9}, os.ErrClosed)
	if l.err != nil {
		t.Fatal(l.err)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(l.dir, FaultsDir, name))
		if err != nil {
			t.Error(err)
		}
		return b
	}
	if got := read("request-000007-cut.body"); string(got) != `{"content": "a` {
		t.Errorf("kept %q", got)
	}
	if got := read("request-000008-cut.body"); len(got) != 2*cutShare || !bytes.HasPrefix(got, []byte("begin")) || !bytes.HasSuffix(got, []byte("xend")) {
		t.Errorf("kept %d bytes of a long one", len(got))
	}
	read("sentinel-2-cut.body")
	if files, err := os.ReadDir(filepath.Join(l.dir, FaultsDir)); err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
}
