package gpu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A journal is a running journalctl.
type journal struct {
	program string
}

// openJournal finds out whether journalctl shows us the kernel's lines: it ends well and shows nothing to a user who
// may not see them.
func openJournal(ctx context.Context, root string) (*journal, error) {
	program := filepath.Join(root, "usr/bin/journalctl")
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-q", "-k", "-n", "1", "-o", "json")
	cmd.Env, cmd.WaitDelay = []string{"LC_ALL=C"}, time.Second
	out, err := cmd.Output()
	switch {
	case err != nil:
		return nil, fmt.Errorf("run %s: %w", program, err)
	case len(bytes.TrimSpace(out)) == 0:
		return nil, fmt.Errorf("%s shows no line of the kernel", program)
	}
	return &journal{program}, nil
}

func (j *journal) Close() error { return nil }

func (j *journal) read(ctx context.Context, lines chan<- logLine) error {
	runtime.LockOSThread() // the death signal follows the thread that starts the child
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, j.program, "-q", "-k", "-f", "-n", "0", "-o", "json")
	cmd.Env, cmd.WaitDelay = []string{"LC_ALL=C"}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	rows := bufio.NewReaderSize(out, 64<<10)
	for {
		row, err := rows.ReadBytes('\n')
		if l, ok := journalLine(row); ok && Relevant(l.text) && !send(ctx, lines, l) {
			break
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", j.program, err)
	}
	return fmt.Errorf("%s ended", j.program)
}

// journalLine reads an object of journalctl -o json. A message that is no UTF-8 comes as a list of bytes. What a program
// wrote into the kernel's log has another facility than 0.
func journalLine(row []byte) (logLine, bool) {
	var o struct {
		Message   json.RawMessage `json:"MESSAGE"`
		Transport string          `json:"_TRANSPORT"`
		Facility  string          `json:"SYSLOG_FACILITY"`
		Realtime  string          `json:"__REALTIME_TIMESTAMP"`
	}
	if json.Unmarshal(row, &o) != nil || o.Transport != "kernel" || o.Facility != "" && o.Facility != "0" {
		return logLine{}, false
	}
	var l logLine
	if json.Unmarshal(o.Message, &l.text) != nil {
		var raw []uint16
		if json.Unmarshal(o.Message, &raw) != nil {
			return logLine{}, false
		}
		b := make([]byte, len(raw))
		for i, c := range raw {
			b[i] = byte(c)
		}
		l.text = strings.ToValidUTF8(string(b), "?")
	}
	if us, err := strconv.ParseInt(o.Realtime, 10, 64); err == nil {
		l.at = moment{clock: 'w', seconds: float64(us) / 1e6, at: time.UnixMicro(us)}
	}
	return l, true
}
