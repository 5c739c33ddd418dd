package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxFields bounds what is read as a hold or a proposal, in bytes.
const maxFields = 64 << 10

// parseFields reads a JSON object whose values are all texts, strictly: a key that is not known or is there twice,
// another kind of value, or anything behind the object is an error. What somebody else wrote must mean the same to
// everybody who reads it.
func parseFields(data []byte, known ...string) (map[string]string, error) {
	if len(data) > maxFields {
		return nil, fmt.Errorf("it has more than %d bytes", maxFields)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8 text")
	}
	in := json.NewDecoder(bytes.NewReader(data))
	token, err := in.Token()
	if err != nil || token != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	fields := map[string]string{}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		key, ok := token.(string)
		if !ok || !slices.Contains(known, key) {
			return nil, fmt.Errorf("it has an unknown key %q: it knows %s", fmt.Sprint(token), strings.Join(known, ", "))
		}
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("it has %q twice", key)
		}
		if token, err = in.Token(); err != nil {
			return nil, notJSON(err)
		}
		value, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%q is no text", key)
		}
		fields[key] = value
	}
	if _, err := in.Token(); err != nil {
		return nil, notJSON(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the JSON object")
	}
	return fields, nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut off")
	}
	return fmt.Errorf("it is not JSON: %w", err)
}

// readFields returns the bytes of a regular file that is small enough. It follows no link and waits for no pipe. A
// missing file is an error that wraps [fs.ErrNotExist].
func readFields(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, notAFile(path, fs.ModeSymlink)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notAFile(path, info.Mode())
	}
	return io.ReadAll(io.LimitReader(f, maxFields+1))
}
