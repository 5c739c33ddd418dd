package answers

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// ErrNoAnswer says that the file has no answer of that number.
var ErrNoAnswer = errors.New("no such answer")

// A Reader reads a file of answers, also one that is still written to: it sees
// what was there when it was opened. It is for one goroutine at a time.
type Reader struct {
	// Torn is how many bytes at the end are no whole record.
	Torn int64

	file  io.ReaderAt
	close func() error
	order []int
	index map[int]record

	plain      *zstd.Decoder
	dictionary *record       // of the decoder in hand
	decoder    *zstd.Decoder // with it; nil: none yet
}

// record is where an answer stands.
type record struct {
	head
	at         int64   // of its compressed frame
	dictionary *record // nil: none
}

// Open reads where the answers of a file stand.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open answers: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open answers: %w", err)
	}
	r, err := newReader(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open answers of %s: %w", path, err)
	}
	r.close = f.Close
	return r, nil
}

func newReader(file io.ReaderAt, size int64) (*Reader, error) {
	plain, err := newDecoder(nil)
	if err != nil {
		return nil, err
	}
	r := &Reader{file: file, index: map[int]record{}, plain: plain, close: func() error { return nil }}
	var at int64
	var dictionary *record
	var b [headSize]byte
	for size-at >= headSize {
		if _, err := file.ReadAt(b[:], at); err != nil {
			return nil, err
		}
		h, err := readHead(b[:])
		if err != nil || size-at-headSize < int64(h.compressed) {
			break
		}
		rec := record{head: h, at: at + headSize, dictionary: dictionary}
		if h.dictionary() {
			rec.dictionary, dictionary = nil, &rec
		}
		if _, twice := r.index[h.id]; !twice {
			r.order = append(r.order, h.id)
		}
		r.index[h.id] = rec
		at = rec.at + int64(h.compressed)
	}
	r.Torn = size - at
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.close() }

// IDs lists the numbers of the answers, in the order in which they came.
func (r *Reader) IDs() []int { return slices.Clone(r.order) }

// Get gives the raw answer to request id. The error wraps ErrNoAnswer if there
// is none.
func (r *Reader) Get(id int) ([]byte, error) {
	rec, ok := r.index[id]
	if !ok {
		return nil, fmt.Errorf("read answer %d: %w", id, ErrNoAnswer)
	}
	raw, err := r.read(rec)
	if err != nil {
		return nil, fmt.Errorf("read answer %d: %w", id, err)
	}
	return raw, nil
}

// All calls f with every answer, in the order in which they came, until one
// cannot be read or f returns an error.
func (r *Reader) All(f func(id int, raw []byte) error) error {
	for _, id := range r.order {
		raw, err := r.Get(id)
		if err == nil {
			err = f(id, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// text reads what was compressed: the floats, and what is left without them.
func (r *Reader) text(rec record) (text []byte, floats []float32, err error) {
	decoder, err := r.decoderOf(rec.dictionary)
	if err != nil {
		return nil, nil, err
	}
	compressed := make([]byte, rec.compressed)
	if _, err := r.file.ReadAt(compressed, rec.at); err != nil {
		return nil, nil, err
	}
	body, err := decoder.DecodeAll(compressed, make([]byte, 0, min(rec.length, 1<<20)))
	if err != nil {
		return nil, nil, err
	}
	if len(body) < 4*rec.floats {
		return nil, nil, errPacked
	}
	return body[4*rec.floats:], readFloats(body, rec.floats), nil
}

func (r *Reader) read(rec record) ([]byte, error) {
	raw, floats, err := r.text(rec)
	if err == nil && rec.packed() {
		raw, err = unpack(raw, floats, rec.length)
	}
	if err != nil {
		return nil, err
	}
	if len(raw) != rec.length || crc32.ChecksumIEEE(raw) != rec.sum {
		return nil, errors.New("what is read is not what was written: the file was changed")
	}
	return raw, nil
}

// decoderOf keeps the decoder of the dictionary that was used last.
func (r *Reader) decoderOf(dictionary *record) (*zstd.Decoder, error) {
	if dictionary == nil {
		return r.plain, nil
	}
	if dictionary == r.dictionary {
		return r.decoder, nil
	}
	text, _, err := r.text(*dictionary)
	if err != nil {
		return nil, fmt.Errorf("read answer %d, its dictionary: %w", dictionary.id, err)
	}
	decoder, err := newDecoder(dictionaryOf(text))
	if err != nil {
		return nil, err
	}
	if r.decoder != nil {
		r.decoder.Close()
	}
	r.dictionary, r.decoder = dictionary, decoder
	return decoder, nil
}
