package systemd

import (
	"bytes"
	"errors"
	"io"
)

// ReadEntries reads what journalctl -o json wrote, such as a file that it was kept in. It hands the entries to f in
// their order, with the lines that journald split put together again: the Raw of such a one is all its rows, one a line.
// An error of f ends the reading and is returned. gaps says, in sentences, what is missing.
func ReadEntries(in io.Reader, f func(Entry) error) (gaps []string, err error) {
	g := &journalGaps{}
	err = readEntries(in, g, f)
	return g.tell(), err
}

func readEntries(in io.Reader, g *journalGaps, f func(Entry) error) error {
	rows := newRowReader(in)
	var split splitLines
	give := func(entries ...Entry) error {
		for _, e := range entries {
			g.see(e)
			if err := f(e); err != nil {
				return err
			}
		}
		return nil
	}
	for {
		row, err := rows.next()
		if errors.Is(err, errLongRow) {
			g.skip(errLongRow)
		} else if len(bytes.TrimSpace(row)) > 0 {
			e, err := ParseEntry(row)
			if err != nil {
				g.skip(err)
			} else {
				if e.ID == IDSuppressed {
					err = give(split.endAll("messages were dropped while it was written")...)
				}
				if err == nil {
					err = give(split.add(e)...)
				}
				if err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return give(split.endAll("it is not there")...)
		} else if err != nil && !errors.Is(err, errLongRow) {
			return err
		}
	}
}
