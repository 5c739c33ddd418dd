package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNoKernelLog says that the kernel's log cannot be followed. The error that wraps it says what was tried and what
// would give it.
var ErrNoKernelLog = errors.New("the kernel's log cannot be read")

// flushAfter is how long an event may wait for more of its lines.
const flushAfter = 500 * time.Millisecond

// Follow calls f for every event of the kernel's log from now on, one at a time, until ctx ends, which is no error. It
// reads /dev/kmsg where that is allowed, else it asks journalctl. The error wraps ErrNoKernelLog if neither can be
// read: a gate on the kernel's log is refused then.
func Follow(ctx context.Context, root string, f func(Event)) error {
	log, err := openKernelLog(ctx, root)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := make(chan logLine)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(lines)
		failed <- log.read(ctx, lines)
	}()
	follow(lines, f)
	if err := <-failed; ctx.Err() == nil && err != nil {
		return fmt.Errorf("follow the kernel's log: %w", err)
	}
	return nil
}

// CanFollow tells whether Follow would work on this host; nil if so.
func CanFollow(ctx context.Context, root string) error {
	log, err := openKernelLog(ctx, root)
	if err != nil {
		return err
	}
	return log.Close()
}

// A logLine is a message of the kernel.
type logLine struct {
	text string
	at   moment
}

// follow makes events of lines until there are no more. An event is told when its next one comes, or soon.
func follow(lines <-chan logLine, f func(Event)) {
	var r KernelReader
	var timer <-chan time.Time
	tell := func(events []Event) {
		for _, e := range events {
			f(e)
		}
	}
	defer func() { tell(r.Flush()) }()
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				return
			}
			tell(r.feed(l.text, l.at))
			switch {
			case !r.waiting():
				timer = nil
			case timer == nil:
				timer = time.After(flushAfter)
			}
		case <-timer:
			timer = nil
			tell(r.Flush())
		}
	}
}

// A kernelLog gives the lines that come from now on.
type kernelLog interface {
	read(ctx context.Context, lines chan<- logLine) error // until ctx ends
	Close() error
}

func openKernelLog(ctx context.Context, root string) (kernelLog, error) {
	kmsg, err := openKmsg(root)
	if err == nil {
		return kmsg, nil
	}
	journal, jerr := openJournal(ctx, root)
	if jerr == nil {
		return journal, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open the kernel's log: %w", ctx.Err())
	}
	return nil, fmt.Errorf("%w: %w; %w: run as root, set kernel.dmesg_restrict to 0, or join the group systemd-journal or adm", ErrNoKernelLog, err, jerr)
}

// A kmsg is /dev/kmsg: every read gives one record.
type kmsg struct {
	*os.File
	boot time.Time // zero: not told
}

func openKmsg(root string) (*kmsg, error) {
	f, err := os.OpenFile(filepath.Join(root, "dev/kmsg"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil && !errors.Is(err, syscall.ESPIPE) {
		f.Close()
		return nil, err
	}
	return &kmsg{f, bootTime(root)}, nil
}

func (k *kmsg) read(ctx context.Context, lines chan<- logLine) error {
	stop := context.AfterFunc(ctx, func() { k.Close() })
	defer stop()
	return records(ctx, k.File, k.boot, lines)
}

func records(ctx context.Context, r io.Reader, boot time.Time, lines chan<- logLine) error {
	buf := make([]byte, 16<<10) // the kernel's own limit of a record is 8 KiB and some
	for {
		n, err := r.Read(buf)
		if errors.Is(err, syscall.EPIPE) {
			continue // records were overwritten before they were read; the next is there
		}
		if err != nil {
			return err
		}
		for record := range strings.Lines(string(buf[:n])) {
			if !Relevant(record) {
				continue
			}
			l := logLine{}
			if l.text, l.at = message(record); l.at.clock == 'm' && !boot.IsZero() {
				l.at.at = boot.Add(time.Duration(l.at.seconds * float64(time.Second)))
			}
			if !send(ctx, lines, l) {
				return nil
			}
		}
	}
}

func send(ctx context.Context, lines chan<- logLine, l logLine) bool {
	select {
	case lines <- l:
		return true
	case <-ctx.Done():
		return false
	}
}

// bootTime is when the host was started, as /proc/stat tells.
func bootTime(root string) time.Time {
	for line := range strings.Lines(readText(filepath.Join(root, "proc/stat"))) {
		if s, ok := strings.CutPrefix(line, "btime "); ok {
			return time.Unix(int64(atoi(s)), 0)
		}
	}
	return time.Time{}
}

// readText reads a small file; "" if it cannot.
func readText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}
