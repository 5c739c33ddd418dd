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
			faults := map[string][]gpu.Event{} // by device
			var reader gpu.KernelReader
			take := func(events []gpu.Event) {
				for _, e := range events {
					if e.Fault {
						faults[e.Device] = append(faults[e.Device], e)
					}
				}
			}
			err := l.kernelLog(ctx, &reader, take)
			take(reader.Flush())
			for _, device := range slices.Sorted(maps.Keys(faults)) {
				add(cmp.Or(device, "the GPU"), "", "%s", faultText(faults[device]))
			}
			return err
		},
	}
}

// faultText tells the faults of a device: how often of which kind, and the first line of the last one.
func faultText(events []gpu.Event) string {
	var kinds []string
	times := map[string]int{}
	for _, e := range events {
		if times[e.Kind]++; times[e.Kind] == 1 {
			kinds = append(kinds, e.Kind)
		}
	}
	for i, kind := range kinds {
		if n := times[kind]; n > 1 {
			kinds[i] = fmt.Sprintf("%s %d times", kind, n)
		}
	}
	last := events[len(events)-1]
	text := strings.Join(kinds, ", ") + " since the boot"
	if last.Process != "" {
		text += fmt.Sprintf(", the last one by %s", last.Process)
		if last.PID != 0 {
			text += fmt.Sprintf(" (process %d)", last.PID)
		}
	}
	line, _, _ := strings.Cut(last.Text, "\n")
	return text + ": " + strings.TrimSpace(line)
}

// kernelLog reads the kernel's log since the boot: from the journal, which keeps all of it, or from what the kernel
// itself still has.
func (l *look) kernelLog(ctx context.Context, reader *gpu.KernelReader, take func([]gpu.Event)) error {
	jerr := errors.New("it is a recorded host")
	boot, berr := l.bootTime()
	switch {
	case berr != nil:
		jerr = berr // what is older than the boot is no matter
	case l.Journal != nil:
		lines := 0
		_, jerr = l.Journal(ctx, systemd.JournalQuery{Kernel: true, Scope: systemd.ScopeSystem, Since: boot}, func(e systemd.Entry) error {
			lines++
			take(reader.FeedMessage(e.Message, e.At))
			return nil
		})
		if jerr == nil && lines > 0 {
			return nil
		}
		jerr = cmp.Or(jerr, errors.New("the journal has no line of the kernel"))
	}
	kmsg, err := os.OpenFile(l.path("dev/kmsg"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if l.UID == 0 { // and it is not allowed to root, as in a container
			return fmt.Errorf("read the kernel's log: %w; %w", err, jerr)
		}
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

// bootTime is when the machine was started.
func (l *look) bootTime() (time.Time, error) {
	seconds, ok := procfs.Counter(l.path("proc/stat"), "btime")
	if !ok {
		return time.Time{}, errors.New("/proc/stat does not say when the machine was started")
	}
	return time.Unix(seconds, 0), nil
}
