package systemd

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"
)

// LogTail returns the last lines that one incarnation of a service wrote, as far as the journal has them: nil where
// there is no journal, or none that may be read. It takes five seconds at most, which only a busy host needs.
func LogTail(ctx context.Context, invocation string, lines int) []string {
	if invocation == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var tail []string
	args := []string{"--no-pager", "--quiet", "--output=json", "--all", "--output-fields=" + journalFields, "--lines=" + strconv.Itoa(lines),
		"_SYSTEMD_INVOCATION_ID=" + invocation}
	_, err := hostJournal().run(ctx, args, func(out io.Reader) error {
		return readEntries(out, &journalGaps{}, func(e Entry) error {
			if line := strings.TrimSpace(e.Message); line != "" {
				tail = append(tail, line)
			}
			return nil
		})
	})
	if err != nil {
		return nil
	}
	return tail
}
