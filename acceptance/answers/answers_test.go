package answers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample makes an answer as llama-server writes them.
func sample(seed uint64, tokens int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"index":0,"id_slot":%d,"prompt":"%d","predicted_per_second":%v,"completion_probabilities":[`, seed%4, rng.Uint64(), rng.Float64()*3000)
	for i := range tokens {
		c, v := 'a'+rng.IntN(26), spell(nil, float32(-rng.ExpFloat64()))
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"token":"%c","bytes":[%d],"logprob":%s,"top_logprobs":[{"id":%d,"token":"%c","bytes":[%d],"logprob":%s}]}`, c, c, c, v, c, c, c, v)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// write makes a file of these answers.
func write(t testing.TB, answers ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers.zst")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for id, raw := range answers {
		if err := w.Add(id, raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestWhatIsAddedIsRead(t *testing.T) {
	answers := [][]byte{
		nil,
		[]byte(`{"error":{"code":503}}`),
		sample(1, 96),
		sample(2, 4),
		sample(3, 96),
		[]byte("not JSON \x01 and \x02 with \xff bytes"),
		bytes.Repeat([]byte(`0.1234567890123-.--..e1`), 400),
		sample(4, 2000),
		sample(5, 96),
		sample(4, 2000),
		[]byte(fmt.Sprint(`[-0.000000000,-3.4028234663852886e+38,1234567890.5,`, float64(float32(0.1)), `,`, math.Pi, `]`)),
	}
	r := open(t, write(t, answers...))
	for _, id := range rand.Perm(len(answers)) {
		got, err := r.Get(id)
		if err != nil || !bytes.Equal(got, answers[id]) {
			t.Errorf("answer %d: %.40q, %v", id, got, err)
		}
	}
	var ids []int
	err := r.All(func(id int, raw []byte) error {
		ids = append(ids, id)
		if !bytes.Equal(raw, answers[id]) {
			t.Errorf("answer %d differs", id)
		}
		return nil
	})
	if err != nil || !slices.Equal(ids, r.IDs()) || len(ids) != len(answers) || r.Torn != 0 {
		t.Errorf("%v, %v, torn %d", ids, err, r.Torn)
	}
	var dictionaries []int
	for _, id := range ids {
		if rec := r.index[id]; rec.head.dictionary() {
			dictionaries = append(dictionaries, id)
		}
	}
	if want := []int{1, 2, 7}; !slices.Equal(dictionaries, want) {
		t.Errorf("the dictionaries are %v, want %v", dictionaries, want)
	}
	if _, err := r.Get(99); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("an answer that is not there: %v", err)
	}
	stop := errors.New("enough")
	if err := r.All(func(int, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want the callback's error", err)
	}
}

// A request of 96 tokens with log-probabilities costs less than 2 kB.
func TestSize(t *testing.T) {
	const n = 50
	var answers [][]byte
	for seed := range uint64(n) {
		answers = append(answers, sample(seed, 96))
	}
	info, err := os.Stat(write(t, answers...))
	if err != nil {
		t.Fatal(err)
	}
	if each := info.Size() / n; each > 1450 {
		t.Errorf("%d bytes an answer of %d", each, len(answers[0]))
	}
}

// A writer that is killed in mid-record loses that record and no other.
func TestTornTail(t *testing.T) {
	path := write(t, sample(1, 8), sample(2, 8), sample(3, 8))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	second, third := r.index[1].at-headSize, r.index[2].at-headSize
	for size := range int64(len(whole)) {
		if err := os.WriteFile(path, whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		cut := open(t, path)
		want, from := 2, third
		switch {
		case size < second:
			want, from = 0, 0
		case size < third:
			want, from = 1, second
		}
		if len(cut.IDs()) != want || cut.Torn != size-from {
			t.Fatalf("cut at %d: answers %v, %d bytes torn", size, cut.IDs(), cut.Torn)
		}
		if want > 0 {
			if got, err := cut.Get(want - 1); err != nil || !bytes.Equal(got, sample(uint64(want), 8)) {
				t.Fatalf("cut at %d: %q, %v", size, got, err)
			}
		}
	}
	// A host that lost power may leave zeros.
	if err := os.WriteFile(path, append(slices.Clone(whole[:third]), make([]byte, 5000)...), 0o644); err != nil {
		t.Fatal(err)
	}
	if cut := open(t, path); len(cut.IDs()) != 2 || cut.Torn != 5000 {
		t.Errorf("zeros at the end: answers %v, %d bytes torn", cut.IDs(), cut.Torn)
	}
}

// A byte that was changed is seen, in whichever answer it is, or changes nothing:
// some bits of a frame have no meaning.
func TestChangedByte(t *testing.T) {
	answers := [][]byte{sample(1, 4), sample(2, 4)}
	path := write(t, answers...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unseen := 0
	for at := range whole {
		changed := slices.Clone(whole)
		changed[at] ^= 0x10
		r, err := newReader(bytes.NewReader(changed), int64(len(changed)))
		if err != nil {
			t.Fatal(err)
		}
		sound := 0
		for id, want := range answers {
			got, err := r.Get(id)
			if err == nil && bytes.Equal(got, want) {
				sound++
			} else if err == nil {
				t.Fatalf("byte %d changed: answer %d reads as something else", at, id)
			}
		}
		if sound == len(answers) {
			unseen++
		}
	}
	if unseen*20 > len(whole) {
		t.Errorf("%d changed bytes of %d were not seen", unseen, len(whole))
	}
}

func TestCreateAndOpenRefuse(t *testing.T) {
	path := write(t, sample(1, 1))
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
	if _, err := Open(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	w, err := Create(path + "y")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(-1, nil); err == nil {
		t.Error("a number below zero")
	}
	if err := w.Sync(); err != nil {
		t.Error(err)
	}
	w.file.Close()
	first := w.Add(0, nil)
	if again := w.Add(1, nil); first == nil || !errors.Is(again, first) {
		t.Errorf("after an error: %v, then %v", first, again)
	}
}

// Nothing in a file brings the reader down, and what it gives is what was
// added.
func FuzzOpen(f *testing.F) {
	small, err := os.ReadFile(write(f, sample(1, 2), nil, []byte("x"), sample(2, 9)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small, 7, byte(1))
	f.Add(small, 60, byte(0xff))
	f.Add([]byte("short"), 0, byte(0))
	f.Fuzz(func(t *testing.T, file []byte, at int, change byte) {
		if at >= 0 && at < len(file) {
			file = slices.Clone(file)
			file[at] ^= change
		}
		r, err := newReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if r.Torn < 0 || r.Torn > int64(len(file)) {
			t.Fatalf("%d of %d bytes torn", r.Torn, len(file))
		}
		for _, id := range r.IDs() {
			r.Get(id)
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte(`[-0.9972718358039856,-0.9972718358039856,0.10000000149011612,1e-7,-0.00000000,12345678901]`))
	f.Add(sample(1, 3))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, floats, ok := pack(raw)
		if !ok {
			return
		}
		got, err := unpack(text, readFloats(appendFloats(nil, floats), len(floats)), len(raw))
		if err != nil || !bytes.Equal(got, raw) {
			t.Fatalf("%q became %q, %v", raw, got, err)
		}
		if len(floats) > len(raw)/leastDigits {
			t.Fatalf("%d floats of %d bytes", len(floats), len(raw))
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "answers.zst"))
	if err != nil {
		b.Fatal(err)
	}
	answers := [][]byte{sample(1, 96), sample(2, 96), sample(3, 96)}
	b.SetBytes(int64(len(answers[0])))
	for n := 0; b.Loop(); n++ {
		if err := w.Add(n, answers[n%3]); err != nil {
			b.Fatal(err)
		}
	}
}
