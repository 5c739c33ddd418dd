package fleet

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// procInfo is what /proc says of one process. A field that could not be read is empty.
type procInfo struct {
	pid        int
	parent     int
	since      time.Time
	exe        string
	argv       []string
	maps       []string // files mapped, each once; see mapped
	dir        string   // where the rest of it can be read; "" where nothing can
	env        []string
	unreadable bool // its environment belongs to another user
}

// clockTick is the unit of the times in /proc/PID/stat, the same on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// readProcess reads one process; ok is false when it has ended.
func readProcess(proc string, pid int) (p procInfo, ok bool) {
	return readProcessOf(proc, pid, bootTime(proc))
}

// readProcessOf is readProcess where it is known already when the machine started.
func readProcessOf(proc string, pid int, boot time.Time) (p procInfo, ok bool) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	p.dir = dir
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return procInfo{}, false
	}
	p.pid = pid
	state, ticks := "", int64(0)
	state, p.parent, ticks = parseStat(string(stat))
	if state == "Z" || state == "X" {
		return procInfo{}, false
	}
	p.since = boot.Add(time.Duration(ticks) * clockTick)
	if p.exe, err = os.Readlink(filepath.Join(dir, "exe")); errors.Is(err, fs.ErrPermission) {
		p.unreadable = true
	}
	cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p.argv = splitNul(cmdline)
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if errors.Is(err, fs.ErrPermission) {
		p.unreadable = true
	} else if errors.Is(err, syscall.ESRCH) {
		return procInfo{}, false
	}
	p.env = splitNul(env)
	return p, true
}

// mapped lists the files that the process has mapped, each once. There can be thousands, so they are read only where
// its program does not say enough.
func (p procInfo) mapped() []string {
	if p.maps != nil || p.dir == "" {
		return p.maps
	}
	maps, _ := os.ReadFile(filepath.Join(p.dir, "maps"))
	return parseMaps(maps)
}

// parseStat takes state, parent and start time (in ticks after boot) out of /proc/PID/stat. The name, in
// parentheses, may hold anything.
func parseStat(stat string) (state string, parent int, start int64) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	start, _ = strconv.ParseInt(fields[19], 10, 64)
	return fields[0], parent, start
}

// parseMaps lists the files of a /proc/PID/maps, each once, in order.
func parseMaps(data []byte) []string {
	var out []string
	seen := map[string]bool{}
	for line := range strings.SplitSeq(string(data), "\n") {
		at := strings.IndexByte(line, '/')
		if at < 0 || seen[line[at:]] {
			continue
		}
		seen[line[at:]] = true
		out = append(out, line[at:])
	}
	return out
}

// bootTime is when the machine started, from /proc/stat; zero where it does not tell.
func bootTime(proc string) time.Time {
	data, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return time.Time{}
	}
	_, rest, ok := bytes.Cut(data, []byte("\nbtime "))
	if !ok {
		return time.Time{}
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	seconds, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func splitNul(data []byte) []string {
	text := strings.TrimSuffix(string(data), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// lookup finds the value of a variable, the last one where it is there twice.
func lookup(env []string, key string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], key+"="); ok {
			return value, true
		}
	}
	return "", false
}

// deletedSuffix is what the kernel puts behind the path of a file that is gone. A file can also be really named
// so.
const deletedSuffix = " (deleted)"

// undeleted takes the suffix off where only the path without it makes sense.
func undeleted(path string) (string, bool) {
	plain, ok := strings.CutSuffix(path, deletedSuffix)
	if !ok {
		return path, false
	}
	if _, err := os.Lstat(path); err == nil {
		return path, false
	}
	return plain, true
}
