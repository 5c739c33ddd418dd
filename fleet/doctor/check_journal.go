package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/systemd"
)

// journal looks whether what a service writes is kept, whole, and can be read by who looks after it.
func journal() Check {
	return Check{
		Name:   "journal",
		Reason: "The lines before a service died are what tells why; a journal that keeps them in memory, drops them for their rate or hides them has nothing to tell.",
		Remedy: "Keep the journal on disk with Storage=persistent in a file of /etc/systemd/journald.conf.d, and let services write as much as they do with RateLimitBurst= there.",
		find: func(ctx context.Context, l *look, add adder) error {
			if _, err := os.Stat(l.path("run/systemd/system")); err != nil {
				return errors.New("this machine was not booted with systemd, and keeps no journal")
			}
			return errors.Join(l.journalStorage(add), l.journalOfUser(add), l.unlogged(add), l.suppressed(ctx, add))
		},
	}
}

// persist works whatever the configuration says: the last file by its name wins.
const persist = `sudo mkdir -p /etc/systemd/journald.conf.d && printf '[Journal]\nStorage=persistent\n' | sudo tee /etc/systemd/journald.conf.d/zz-persistent.conf && sudo systemctl restart systemd-journald && sudo journalctl --flush`

// moreRate raises the limit for everything: that of a user's unit has no effect, since journald counts all that a user's
// units write for user@UID.service.
const moreRate = `sudo mkdir -p /etc/systemd/journald.conf.d && printf '[Journal]\nRateLimitBurst=1000000\n' | sudo tee /etc/systemd/journald.conf.d/zz-rate.conf && sudo systemctl restart systemd-journald`

// journalStorage looks where journald keeps what it gets. It follows journald.conf(5): one list of drop-ins by name, the
// stronger folder's of two of a name, and "auto" where nothing is said, which is the disk only if /var/log/journal is
// there.
func (l *look) journalStorage(add adder) error {
	files, err := l.journaldFiles()
	if err != nil {
		return fmt.Errorf("where the journal is kept: %w", err)
	}
	storage, where := "auto", ""
	level, levelAt := "", ""
	for _, path := range files {
		text, err := procfs.Read(path)
		if err != nil {
			return fmt.Errorf("where the journal is kept: %w", err)
		}
		file, err := systemd.ParseFile(path, text)
		if err != nil {
			return fmt.Errorf("where the journal is kept: %w", err)
		}
		for _, line := range file.Get("Journal", "Storage") {
			storage, where = line.Value, fmt.Sprintf("%s:%d", path, line.Number)
		}
		for _, line := range file.Get("Journal", "MaxLevelStore") {
			level, levelAt = line.Value, fmt.Sprintf("%s:%d", path, line.Number)
		}
	}
	if slices.Contains(aboveInfo, level) {
		add(levelAt, "take the line out, then: sudo systemctl restart systemd-journald", "the journal drops what services write, which is of the level info (MaxLevelStore=%s)", level)
	}
	switch storage {
	case "none":
		add(where, persist, "the journal keeps nothing (Storage=none)")
	case "volatile":
		add(where, persist, "the journal is kept in memory and gone after a reboot (Storage=volatile)")
	case "persistent":
	default:
		if _, err := os.Stat(l.path("var/log/journal")); errors.Is(err, fs.ErrNotExist) {
			add("/var/log/journal", persist, "the journal is kept in memory and gone after a reboot: the folder is not there, and Storage=auto does not make it")
		}
	}
	return nil
}

// aboveInfo are the levels that leave out info, the one of what a service writes.
var aboveInfo = []string{"emerg", "alert", "crit", "err", "warning", "notice", "0", "1", "2", "3", "4", "5"}

// unlogged looks for services that throw their log away. One that writes it to a file or a namespace of its own keeps it.
func (l *look) unlogged(add adder) error {
	services, _ := l.services() // what is unseen of them is said with what was suppressed
	for _, s := range services {
		if !s.loaded() {
			continue
		}
		lost := func(key string, values []string) bool {
			v := s.Settings.Last("Service", key)
			is := slices.Contains(values, v.Line.Value)
			if is {
				add(fmt.Sprintf("%s:%d", v.File, v.Number), s.typed("take it out, then: systemctl --user daemon-reload && 1bit pkg restart UNIT"),
					"%s: %s=%s throws away what tells why it died", s.where, key, v.Line.Value)
			}
			return is
		}
		switch s.Settings.Last("Service", "StandardError").Line.Value {
		case "", "inherit":
			lost("StandardOutput", []string{"null"})
		default:
			lost("StandardError", []string{"null"})
		}
		if s.Settings.Last("Service", "SyslogLevel").Line.Value == "" {
			lost("LogLevelMax", aboveInfo)
		}
	}
	return nil
}

// journaldFiles are the files of journald's configuration in the order in which they count.
func (l *look) journaldFiles() ([]string, error) {
	dirs := []string{"etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd"} // the strongest first
	var files []string
	for _, dir := range dirs {
		path := l.path(dir, "journald.conf")
		if _, err := os.Stat(path); err == nil {
			files = append(files, path)
			break
		}
	}
	byName := map[string]string{}
	for _, dir := range slices.Backward(dirs) {
		found, err := filepath.Glob(l.path(dir, "journald.conf.d/*.conf"))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			byName[filepath.Base(path)] = path
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if target, err := filepath.EvalSymlinks(byName[name]); err == nil && target != "/dev/null" { // which masks it
			files = append(files, byName[name])
		}
	}
	return files, nil
}

// lowestUser is the first uid whose processes have a journal of their own, as SYS_UID_MAX has it nearly everywhere; what
// those of lower ones write is in the system's.
const lowestUser = 1000

// journalOfUser looks whether an account may read what its own services write. Its own journal is made with its first
// message, with a list of access rights that gives it to the account.
func (l *look) journalOfUser(add adder) error {
	if l.UID == 0 || len(l.Hosts) == 0 || l.Hosts[0].Scope == systemd.ScopeSystem {
		return nil
	}
	name := fmt.Sprintf("user-%d.journal", l.UID)
	if l.UID < lowestUser {
		name = "system.journal"
	}
	path := l.path("var/log/journal", procfs.FirstLine(l.path("etc/machine-id")), name)
	switch err := unix.Access(path, unix.R_OK); {
	case errors.Is(err, unix.EACCES):
		add(path, "from the next login on it may, with: sudo usermod -aG systemd-journal "+l.User, "%s may not read it, and its services write into it", l.User)
	case err != nil && !errors.Is(err, unix.ENOENT): // none is there before the first message
		return fmt.Errorf("whether %s may read the journal of its services: %w", l.User, err)
	}
	return nil
}

// suppressed looks whether journald dropped messages of our services since the boot. What it says of that is in the
// system's journal, which not everybody may read.
func (l *look) suppressed(ctx context.Context, add adder) error {
	services, err := l.services()
	if len(services) == 0 || l.Journal == nil {
		return err
	}
	unseen := []error{err}
	dropped := map[string]int{}
	boot, err := l.bootTime()
	if err != nil {
		return errors.Join(append(unseen, fmt.Errorf("whether messages of services were dropped: %w", err))...)
	}
	_, err = l.Journal(ctx, systemd.JournalQuery{Scope: systemd.ScopeSystem, Since: boot, IDs: []string{systemd.IDSuppressed}}, func(e systemd.Entry) error {
		n, _ := strconv.Atoi(e.Fields["N_DROPPED"])
		dropped[e.Unit] += n
		return nil
	})
	if err != nil {
		unseen = append(unseen, fmt.Errorf("whether messages of services were dropped: %w", err))
	}
	for _, s := range services {
		if n := dropped[s.Unit]; n > 0 {
			add(s.where, moreRate, "journald dropped %d of its messages since the boot for their rate", n)
		}
	}
	return errors.Join(unseen...)
}
