package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/systemd"
)

// gpuFault looks for faults of a GPU in the kernel's log.
func gpuFault() Check {
	return Check{
		Name:   "gpu-fault",
		Reason: "A GPU that was reset or faulted since the boot has ended the work of every process on it, and may do so again until the next boot.",
		Remedy: "See what was at work then with journalctl -k -b -g amdgpu and 1bit incident UNIT, and reboot before the next soak: a verdict after a fault is worth little.",
		find: func(ctx context.Context, l *look, add adder) error {
			type place struct{ device, kind string }
			faults, last := map[place]int{}, map[place]gpu.Event{}
			var reader gpu.KernelReader
			take := func(events []gpu.Event) {
				for _, e := range events {
					if e.Fault {
						at := place{e.Device, e.Kind}
						faults[at]++
						last[at] = e
					}
				}
			}
			err := l.kernelLog(ctx, &reader, take)
			take(reader.Flush())
			for _, at := range slices.SortedFunc(maps.Keys(faults), func(a, b place) int {
				return cmp.Or(strings.Compare(a.device, b.device), strings.Compare(a.kind, b.kind))
			}) {
				e, times := last[at], "once"
				if faults[at] > 1 {
					times = fmt.Sprintf("%d times", faults[at])
				}
				who := ""
				if e.Process != "" {
					who = fmt.Sprintf(" (the last one blames %s, process %d)", e.Process, e.PID)
				}
				first, _, _ := strings.Cut(e.Text, "\n")
				add(cmp.Or(at.device, "the GPU"), "", "%s %s since the boot%s: %s", at.kind, times, who, strings.TrimSpace(first))
			}
			return err
		},
	}
}

// kernelLog reads the kernel's log since the boot: from the journal, which keeps all of it, or from what the kernel
// itself still has.
func (l *look) kernelLog(ctx context.Context, reader *gpu.KernelReader, take func([]gpu.Event)) error {
	jerr := errors.New("it is a recorded host")
	if l.Journal != nil {
		lines := 0
		_, jerr = l.Journal(ctx, systemd.JournalQuery{Kernel: true, Scope: systemd.ScopeSystem, Since: l.bootTime()}, func(e systemd.Entry) error {
			lines++
			take(reader.FeedMessage(e.Message, e.At))
			return nil
		})
		if jerr == nil && lines > 0 {
			return nil
		}
	}
	kmsg, err := os.OpenFile(l.path("dev/kmsg"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("read the kernel's log: %w; %w; run it as root, or join the group systemd-journal", err, jerr)
	}
	defer kmsg.Close()
	record := make([]byte, 16<<10) // the kernel's own limit of a record is 8 KiB and some
	for {
		// Not through the runtime's poller, which would wait for more.
		n, err := kmsgRead(kmsg, record)
		switch {
		case errors.Is(err, syscall.EPIPE): // records were overwritten before they were read
			continue
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the kernel's log: %w", err)
		}
		for line := range strings.Lines(string(record[:n])) {
			take(reader.Feed(line))
		}
	}
}

// kmsgRead reads one record; syscall.EAGAIN says that there are no more.
func kmsgRead(kmsg *os.File, into []byte) (int, error) {
	n, err := syscall.Read(int(kmsg.Fd()), into)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// bootTime is when the machine was started, zero where that is not told.
func (l *look) bootTime() time.Time {
	seconds, ok := procfs.Counter(l.path("proc/stat"), "btime")
	if !ok {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
