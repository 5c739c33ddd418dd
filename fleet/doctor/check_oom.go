package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/systemd"
)

// oom looks for services of which the kernel has killed a process for want of memory: in what runs now, and, of those that
// systemd has started again, since the boot.
func oom() Check {
	return Check{
		Name:   "oom",
		Reason: "The kernel kills what is largest when memory runs out, and that is the server: what ran out once runs out again.",
		Remedy: "Lower --ctx-size or --parallel, raise MemoryMax=, or keep other work off the machine with: 1bit claim run",
		find: func(ctx context.Context, l *look, add adder) error {
			services, err := l.services()
			unseen := []error{err}
			for _, s := range services {
				if !s.loaded() {
					continue
				}
				group := l.path("sys/fs/cgroup", s.Loaded.ControlGroup, "memory.events")
				kills := int64(0)
				if s.Loaded.ControlGroup != "" {
					kills, _ = procfs.Counter(group, "oom_kill")
				}
				if kills == 0 && s.Loaded.Result == "oom-kill" {
					kills = 1
				}
				if kills == 0 && s.Restarts > 0 && s.User == "" {
					if kills, err = l.oomKills(ctx, s); err != nil {
						unseen = append(unseen, fmt.Errorf("whether %s was killed for memory: %w", s.where, err))
					}
				}
				if kills > 0 {
					limit := "it has no MemoryMax="
					if s.Loaded.MemoryMax != nil {
						limit = fmt.Sprintf("its MemoryMax= is %.1f GiB", float64(*s.Loaded.MemoryMax)/(1<<30))
					}
					add(s.where, "", "%d of its processes were killed for want of memory since it was started or the machine was; %s", kills, limit)
				}
			}
			return errors.Join(unseen...)
		},
	}
}

// oomKills counts what the journal says of this boot.
func (l *look) oomKills(ctx context.Context, s service) (kills int64, err error) {
	boot, err := l.bootTime()
	if err != nil {
		return 0, err
	}
	q := systemd.JournalQuery{Scope: s.Scope, Unit: s.Unit, Since: boot, IDs: []string{systemd.IDOOM, systemd.IDOOMD}}
	_, err = systemd.ReadJournal(ctx, q, func(systemd.Entry) error { kills++; return nil })
	return kills, err
}
