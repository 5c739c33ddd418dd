package systemd

import "context"

// FollowJournal hands the entries that a query asks for to f as they are written, from those after q.After on, or from
// now on where that is empty. It goes on until ctx ends, which is no error, or f returns one.
func FollowJournal(ctx context.Context, q JournalQuery, f func(Entry) error) error {
	return ErrNoJournal
}
