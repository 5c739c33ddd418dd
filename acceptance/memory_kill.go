package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/internal/procfs"
)

// A victim is a server that ended in a way in which those that guard the memory
// of a host end programs: the kernel and systemd-oomd by SIGKILL, earlyoom first
// by SIGTERM, after which an engine ends well.
type victim struct {
	root  string
	pids  []int  // that it had
	scope string // the systemd unit that held it; "": none of its own
	group string // control group of that unit
}

// Proof of a kill may come a moment after it.
const (
	proofTries = 3
	proofEvery = 300 * time.Millisecond
	proofMost  = 1500 * time.Millisecond
)

// mayBeVictim tells whether whoever guards the memory may have ended a process so.
func mayBeVictim(s engine.ExitStatus) bool {
	switch s.KilledBy() {
	case unix.SIGKILL, unix.SIGTERM:
		return true
	case 0:
		return s.Code == 0
	}
	return false
}

// proof says who has killed the server for memory, in their own words. It is ""
// without proof: then it was somebody else, or the server itself.
func (v victim) proof(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, proofMost)
	defer cancel()
	journal := filepath.Join(v.root, "usr/bin/journalctl")
	for range proofTries {
		for _, key := range []string{"oom_kill", "oom_group_kill"} {
			file := filepath.Join(v.root, "sys/fs/cgroup", v.group, "memory.events")
			if n, ok := procfs.Counter(file, key); v.group != "" && ok && n > 0 {
				return fmt.Sprintf("memory.events of %s: %s %d", v.scope, key, n)
			}
		}
		cmd := exec.CommandContext(ctx, journal, "-q", "-o", "json", "--since", "-"+oomRecent.String(),
			"_TRANSPORT=kernel", "+", "SYSLOG_IDENTIFIER=earlyoom", "+", "SYSLOG_IDENTIFIER=systemd-oomd", "+", "SYSLOG_IDENTIFIER=systemd")
		cmd.Env, cmd.WaitDelay = []string{"LC_ALL=C"}, time.Second
		out, err := cmd.Output()
		for row := range strings.Lines(string(out)) {
			if line := v.named([]byte(row)); line != "" {
				return line
			}
		}
		if err != nil {
			return "" // there is no journal, or it is not for us
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(proofEvery):
		}
	}
	return ""
}

// What the guards of memory write when they kill: a process, or a unit.
var (
	reKernelKill = lazyregexp.New(`\b[Kk]ill(?:ed)? process (\d+)\b`)
	reEarlyKill  = lazyregexp.New(`^(?:sending SIG\w+ to|killing) process (\d+) `)
	reOomdKill   = lazyregexp.New(`^(?:Killed|Marked) (/\S+) (?:due to|for killing)`)
	reUnitKill   = lazyregexp.New(`^(\S+): (?:systemd-oomd killed |A process of this unit has been killed by the OOM killer|Failed with result 'oom-kill')`)
)

// named reads an object of journalctl -o json. It gives the line if that tells
// of the kill of this server.
func (v victim) named(row []byte) string {
	var o struct {
		Message    string `json:"MESSAGE"`
		Transport  string `json:"_TRANSPORT"`
		Identifier string `json:"SYSLOG_IDENTIFIER"`
		Facility   string `json:"SYSLOG_FACILITY"`
	}
	if json.Unmarshal(row, &o) != nil {
		return ""
	}
	var m []string
	switch {
	case o.Transport == "kernel" && (o.Facility == "" || o.Facility == "0"): // programs write into it with others
		m = reKernelKill().FindStringSubmatch(o.Message)
	case o.Transport == "kernel":
	case o.Identifier == "earlyoom":
		m = reEarlyKill().FindStringSubmatch(o.Message)
	case o.Identifier == "systemd-oomd":
		m = reOomdKill().FindStringSubmatch(o.Message)
	case o.Identifier == "systemd":
		m = reUnitKill().FindStringSubmatch(o.Message)
	}
	if m == nil {
		return ""
	}
	pid, err := strconv.Atoi(m[1])
	if err == nil && slices.Contains(v.pids, pid) || err != nil && v.scope != "" && path.Base(m[1]) == v.scope {
		return o.Message
	}
	return ""
}

// groupOf gives the control group of a process, "" if it cannot be told. proc is
// /proc.
func groupOf(proc string, pid int) string {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if group, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(group)
		}
	}
	return ""
}
