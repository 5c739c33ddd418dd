package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoJournal is wrapped when the journal cannot be read at all. The message says why and what to do about it.
var ErrNoJournal = errors.New("no journal to read")

// journalctl is the reader of the journal; there are hosts without it.
const journalctl = "/usr/bin/journalctl"

// ReadJournal hands the entries that a query asks for to f, in the order of the journal. An error of f ends the reading
// and is returned. gaps says, in sentences, what of them is or may be missing: what journald dropped or no longer has,
// what this user may not read, files that cannot be read, messages that were too long. The error wraps ErrNoJournal
// where nothing can be read; what could be read before an error has been handed out.
func ReadJournal(ctx context.Context, q JournalQuery, f func(Entry) error) (gaps []string, err error) {
	return hostJournal().read(ctx, q, f)
}

// A journal is the one of a host, through the program that reads it.
type journal struct {
	program string
	root    string
	pause   time.Duration // before a program that followed and ended is started again, doubled each time
}

// hostJournal is the journal of this host.
func hostJournal() journal { return journal{program: journalctl, root: "/", pause: followPause} }

func (j journal) read(ctx context.Context, q JournalQuery, f func(Entry) error) ([]string, error) {
	args, err := q.args()
	if err != nil {
		return nil, err
	}
	store, err := j.store()
	if err != nil {
		return nil, err
	}
	g := &journalGaps{}
	s := sight{q: q, started: map[string]bool{}}
	var stop error
	said, err := j.run(ctx, args, func(out io.Reader) error {
		return readEntries(out, g, func(e Entry) error {
			if s.see(e, g) {
				stop = f(e)
			}
			return stop
		})
	})
	var ended *exec.ExitError
	switch {
	case stop != nil:
		return g.tell(), stop
	case errors.As(err, &ended) && s.rows > 0:
		g.add("journalctl gave up: what comes after the last entry is missing")
	case err != nil:
		return nil, fmt.Errorf("read the journal: %w%s", err, inBrackets(said))
	case s.rows == 0 && (q.Scope == ScopeSystem || q.Kernel && q.Unit == "") && store.closed+store.hidden > 0:
		return nil, fmt.Errorf("%w: this user may not read the system's; %s", ErrNoJournal, joinGroup)
	}
	for line := range strings.Lines(said) {
		g.add("journalctl says: %s", strings.TrimSpace(line))
	}
	if store.closed+store.hidden > 0 {
		g.add("this user may not read the journal of the system: whether journald dropped messages, and what the system manager and the kernel say, is not known; %s", joinGroup)
	}
	err = j.checkBegin(ctx, s, store, g)
	return g.tell(), err
}

// sight is what is remembered of the entries of one reading.
type sight struct {
	q       JournalQuery
	rows    int
	first   *Entry          // of the unit
	started map[string]bool // invocations of which the start was seen
}

// see looks at the next entry and says whether it was asked for.
func (s *sight) see(e Entry, g *journalGaps) bool {
	s.rows++
	if s.q.After != "" && s.rows == 1 {
		if e.Cursor == s.q.After {
			return false
		}
		g.add("the journal no longer has the entry from which on it was to be read: it goes on at %s", utc(e.At))
	}
	if s.first == nil && e.Unit != "" && e.Unit == unitName(s.q.Unit) {
		s.first = &Entry{At: e.At, Invocation: e.Invocation}
	}
	if e.ID == IDUnitStarting || e.ID == IDUnitStarted {
		s.started[e.Invocation] = true
	}
	return s.q.wants(e)
}

// checkBegin says where the journal no longer has what was asked for.
func (j journal) checkBegin(ctx context.Context, s sight, store journalStore, g *journalGaps) error {
	if s.q.Since.IsZero() || s.q.After != "" {
		return nil
	}
	begin, found, err := j.edge(ctx)
	if err != nil || !found || !begin.At.After(s.q.Since.Add(time.Second)) {
		return err
	}
	whole := store.closed+store.hidden == 0
	switch {
	case s.first != nil && !s.started[s.first.Invocation] && len(s.q.IDs) == 0:
		g.add("the journal begins at %s, and the unit ran before: the beginning of its log is gone", utc(begin.At))
	case !store.persistent:
		g.add("the journal begins at %s, with the boot: it is kept in memory only (Storage=persistent in journald.conf keeps it)", utc(begin.At))
	case whole && number(begin.Cursor) > 1:
		g.add("the journal begins at %s: older entries have been removed (SystemMaxUse= in journald.conf says how much is kept)", utc(begin.At))
	case !whole && s.first == nil:
		g.add("what this user may read of the journal begins at %s", utc(begin.At))
	}
	return nil
}

// edge reads the first entry of the journal, or with arguments the first that they give.
func (j journal) edge(ctx context.Context, args ...string) (e Entry, found bool, err error) {
	enough := errors.New("enough")
	said, err := j.run(ctx, append([]string{"--no-pager", "--quiet", "--output=json", "--output-fields=_BOOT_ID"}, args...),
		func(out io.Reader) error {
			return readEntries(out, &journalGaps{}, func(first Entry) error {
				e, found = first, true
				return enough
			})
		})
	if err != nil && !errors.Is(err, enough) {
		return e, false, fmt.Errorf("read the edge of the journal: %w%s", err, inBrackets(said))
	}
	return e, found, nil
}

// number is the place of an entry in all that journald wrote into this store, from 1 on: its cursor has it in
// hexadecimal. 0: it does not tell.
func number(cursor string) uint64 {
	for part := range strings.SplitSeq(cursor, ";") {
		if text, ok := strings.CutPrefix(part, "i="); ok {
			n, _ := strconv.ParseUint(text, 16, 64)
			return n
		}
	}
	return 0
}

// run runs journalctl and has its output read. An error of read is returned as it is. said is what the program wrote
// to its standard error, not more than some KiB.
func (j journal) run(ctx context.Context, args []string, read func(io.Reader) error) (said string, err error) {
	runtime.LockOSThread() // the death signal follows the thread that starts the child
	defer runtime.UnlockOSThread()
	life, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(life, j.program, args...)
	cmd.Env, cmd.WaitDelay = []string{"LC_ALL=C.UTF-8"}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var stderr headBuffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: %s is not there", ErrNoJournal, j.program)
	} else if err != nil {
		return "", err
	}
	readErr := read(out)
	if readErr != nil {
		end()
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case readErr != nil:
		err = readErr
	case err != nil:
		err = fmt.Errorf("%s: %w", j.program, err)
	}
	return stderr.String(), err
}

func inBrackets(said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(said, "\n", "; ") + ")"
}

// headBuffer keeps the beginning of what is written into it.
type headBuffer struct{ strings.Builder }

func (b *headBuffer) Write(p []byte) (int, error) {
	b.Builder.Write(p[:min(len(p), max(0, 4096-b.Len()))])
	return len(p), nil
}
