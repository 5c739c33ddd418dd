package answers

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// A Writer appends answers to a file. It may be used by several goroutines.
type Writer struct {
	mu         sync.Mutex
	file       *os.File
	plain      *zstd.Encoder
	encoder    *zstd.Encoder // with the dictionary
	dictionary int           // length of the text it is from; 0: none yet

	body, frame, out []byte // reused
	err              error  // what ended writing
}

// Create makes a file of answers. It must not exist.
func Create(path string) (*Writer, error) {
	plain, err := newEncoder(nil)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create file of answers: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		f.Close()
		return nil, fmt.Errorf("create file of answers: %w", err)
	}
	return &Writer{file: f, plain: plain}, nil
}

// Add appends the answer to request id, of which there may be one. After an
// error nothing more is written, since what follows a torn record could not be
// found.
func (w *Writer) Add(id int, raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if id < 0 || len(raw) > maxAnswer {
		return fmt.Errorf("keep answer %d: %d bytes: want a number from 0 and at most %d bytes", id, len(raw), maxAnswer)
	}
	h := head{id: id, length: len(raw), sum: crc32.ChecksumIEEE(raw)}
	text, floats, packed := pack(raw)
	if packed {
		h.floats, h.flags = len(floats), flagPacked
	} else {
		text = raw
	}
	encoder := w.encoder
	if len(text) >= max(1, 2*w.dictionary) {
		h.flags |= flagDictionary
		encoder = w.plain
	} else if encoder == nil {
		encoder = w.plain
	}
	w.body = append(appendFloats(w.body[:0], floats), text...)
	w.frame = encoder.EncodeAll(w.body, w.frame[:0])
	h.compressed = len(w.frame)
	w.out = append(h.appendTo(w.out[:0]), w.frame...)
	if _, err := w.file.Write(w.out); err != nil {
		w.err = fmt.Errorf("keep answer %d: %w", id, err)
		return w.err
	}
	if h.dictionary() {
		w.encoder, w.err = newEncoder(dictionaryOf(text))
		w.dictionary = len(text)
	}
	return w.err
}

// Sync brings everything that was added to the disk.
func (w *Writer) Sync() error {
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("sync answers: %w", err)
	}
	return nil
}

// Close syncs and closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.file.Sync()
	if closeErr := w.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("close answers: %w", err)
	}
	return nil
}
