package systemd

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// journalctl is the reader of the journal; there are hosts without it.
const journalctl = "/usr/bin/journalctl"

// LogTail returns the last lines that one incarnation of a service wrote, as far as the journal has them: nil where
// there is no journal, or none that may be read. It takes a second at most.
func LogTail(ctx context.Context, invocation string, lines int) []string {
	if invocation == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, journalctl, "--quiet", "--no-pager", "--output=cat",
		"--lines="+strconv.Itoa(lines), "_SYSTEMD_INVOCATION_ID="+invocation)
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var tail []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			tail = append(tail, line)
		}
	}
	return tail
}
