package gpu

import (
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// A moment is when a line was written, on whatever clock the line has.
type moment struct {
	clock   byte    // 'm' since boot, 'd' time of day, 'w' since 1970, 0 none
	seconds float64 // on that clock
	at      time.Time
}

// before tells whether m was at most so many seconds before later. Moments that cannot be compared are close.
func (m moment) before(later moment, seconds float64) bool {
	if m.clock == 0 || m.clock != later.clock {
		return true
	}
	d := later.seconds - m.seconds
	if m.clock == 'd' && d < 0 {
		d += 24 * 60 * 60
	}
	return d >= 0 && d <= seconds
}

// The ways in which a line of the kernel's log begins: as /dev/kmsg gives it, as dmesg prints it (with the time since
// boot, with the time of day, in ISO format), as journalctl prints it (months are those of the reader's language).
var (
	reKmsg   = lazyregexp.New(`^(\d+),\d+,(\d+),[^;]*;`)
	reSince  = lazyregexp.New(`^(?:kern +:\w+ +: )?\[ *(\d+\.\d+)\](?:\[ *[TC]\d+\])? (?:\S+ kernel: )?`)
	reWall   = lazyregexp.New(`^(?:kern +:\w+ +: )?\[[^\[\]]*?(\d\d):(\d\d):(\d\d)[^\[\]]*\] `)
	reISO    = lazyregexp.New(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[.,]?(\d*)(Z|[+-]\d\d:?\d\d) (?:(?:\S+ )?kernel: )?(?:\[ *\d+\.\d+\] )?`)
	reSyslog = lazyregexp.New(`^(?:\S+ +){1,4}?(\d\d):(\d\d):(\d\d)(?:\.\d+)? \S+ kernel: (?:\[ *\d+\.\d+\] )?`)
	reColour = lazyregexp.New("\x1b\\[[0-9;]*m")
)

// message takes from a line what was put before the kernel's own words. It is "" for a line that a program wrote into
// the kernel's log, which /dev/kmsg marks.
func message(line string) (string, moment) {
	if strings.Contains(line, "\x1b") {
		line = reColour().ReplaceAllString(line, "")
	}
	line = strings.TrimRight(line, "\r\n")
	if m := reKmsg().FindStringSubmatch(line); m != nil {
		priority, err := strconv.Atoi(m[1])
		if err != nil || priority > 7 {
			return "", moment{}
		}
		us, _ := strconv.ParseFloat(m[2], 64)
		return line[len(m[0]):], moment{clock: 'm', seconds: us / 1e6}
	}
	if m := reSince().FindStringSubmatch(line); m != nil {
		s, _ := strconv.ParseFloat(m[1], 64)
		return line[len(m[0]):], moment{clock: 'm', seconds: s}
	}
	if m := reWall().FindStringSubmatch(line); m != nil {
		return line[len(m[0]):], timeOfDay(m[1:4])
	}
	if m := reISO().FindStringSubmatch(line); m != nil {
		at, err := time.Parse("2006-01-02T15:04:05.999999999Z0700", m[1]+"."+m[2]+"0"+strings.Replace(m[3], ":", "", 1))
		if err != nil {
			return line[len(m[0]):], moment{}
		}
		return line[len(m[0]):], moment{clock: 'w', seconds: float64(at.UnixMicro()) / 1e6, at: at}
	}
	if m := reSyslog().FindStringSubmatch(line); m != nil {
		return line[len(m[0]):], timeOfDay(m[1:4])
	}
	return line, moment{}
}

func timeOfDay(hms []string) moment {
	s := 0
	for _, part := range hms {
		n, _ := strconv.Atoi(part)
		s = s*60 + n
	}
	return moment{clock: 'd', seconds: float64(s)}
}

// How amdgpu begins a message: with its device or without, with its name once, twice or not at all, with a mark of
// the graphics core and the function that speaks.
var (
	reDriver = lazyregexp.New(`^(?:kfd kfd: )?amdgpu(?: ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))?:(?: amdgpu:)*(?: \[drm(?::\S+(?: \[amdgpu\])?)?\])?(?: \*ERROR\*)?\s*`)
	reCore   = lazyregexp.New(`^\[drm(?::\S+(?: \[amdgpu\])?)?\](?: \*ERROR\*)?\s*`)
)

// amdMessage splits a message of amdgpu into device and text.
func amdMessage(msg string) (device, text string, ok bool) {
	if m := reDriver().FindStringSubmatch(msg); m != nil {
		return m[1], msg[len(m[0]):], true
	}
	if m := reCore().FindString(msg); m != "" {
		return "", msg[len(m):], true
	}
	return "", "", false
}

// classify names what a text of amdgpu says; "" if it is nothing to tell.
func classify(text string) (kind string, fault bool) {
	has := func(s string) bool { return strings.Contains(text, s) }
	begins := func(s string) bool { return strings.HasPrefix(text, s) }
	switch {
	case begins("ring ") && has(" timeout, but soft recovered"):
		return KindSoftRecovered, false
	case begins("ring ") && has(" timeout"):
		return KindRingTimeout, true
	case has("page fault (src_id:"), begins("GPU fault detected:"), has("L2_PROTECTION_FAULT_STATUS:"):
		return KindPageFault, true
	case begins("GPU reset begin"):
		return KindReset, true
	case begins("Ring ") && has(" reset fail"), begins("GPU reset(") && has(" failed"),
		begins("GPU reset end with ret"), begins("GPU Recovery Failed"):
		return KindResetFailed, true
	case begins("VRAM is lost"):
		return KindVRAMLost, true
	case begins("device wedged"):
		return KindWedged, true
	case begins("device lost from bus"):
		return KindLost, true
	case begins("MES") && has("failed to respon"): // "failed to response" in older kernels
		return KindScheduler, true
	case begins("Failed to evict "), begins("Failed to restore queue"), begins("Failed to restore process"):
		return KindQueue, true
	case begins("Failed to suspend process"):
		return KindSuspend, true
	case has("uncorrectable hardware error"):
		return KindECC, true
	case begins("Freeing queue vital buffer"):
		return KindEvict, false
	case begins("SVM mapping failed"), begins("init_user_pages: Failed to get user pages"):
		return KindMemory, false
	case begins("Fence fallback timer expired"):
		return KindFence, false
	}
	return "", false
}

// How amdgpu names a process, on a line of its own or within a page fault's. Names may be empty and may hold anything,
// so the last pids that fit are meant.
var (
	reProcess = lazyregexp.New(`^(?:Process information: process|Process|in process|for process) (.*) pid (\d+) thread (.*) pid \d+\)?$`)
	reInline  = lazyregexp.New(`pasid:(\d+), for process (.*) pid (\d+) thread (.*) pid \d+\)$`)
	reEvict   = lazyregexp.New(`^Evicting pid (\d+)$`) // with the driver's debug_evictions
)
