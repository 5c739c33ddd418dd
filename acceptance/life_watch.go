package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine/gpu"
)

// Watchdogs by name.
const (
	watchMemory = "mem-available"
	watchTemp   = "temperature"
	watchGTT    = "gtt-growth"
	watchLife   = "life"
)

// defaultTempC is the temperature at which a GPU is too hot to say anything
// about its kernels.
const defaultTempC = 93

// hostWatch is what a life saw of its host.
type hostWatch struct {
	sensors gpu.Sensors

	mu         sync.Mutex
	last       time.Time // sample
	first      time.Time
	oom        oomWatch
	atLoad     HostFacts
	loading    bool
	evictedAt  *int64 // ms, when the load began
	evicted    *int64 // ms, during the load
	peakGTT    *float64
	minMem     *float64
	maxTemp    *float64
	memory     []detect.Sample
	kernel     string // why the kernel's log is not followed; "": it is
	kernelSeen int
	pids       []int          // that the server had, those that have ended too
	devices    []string       // that they had open
	missing    map[string]int // looks in a row at which a sensor told nothing, by the plan's key
}

// sample is one line of samples.jsonl. A nil field means that the host has no
// such sensor.
type sample struct {
	At              time.Time    `json:"at"`
	US              int64        `json:"us"` // of the life's clock
	MemAvailableGiB *float64     `json:"mem_available_gib"`
	GTTUsedGiB      *float64     `json:"gtt_used_gib"`
	ServerMiB       *float64     `json:"server_mib"` // anonymous and swapped memory of the server
	LoadAverage     string       `json:"load_average"`
	TempC           *float64     `json:"temp_c"` // of the hottest GPU
	EvictedMS       *int64       `json:"evicted_ms"`
	Devices         []gpu.Device `json:"devices,omitempty"`
	Requests        int          `json:"requests"`
}

// Samples are taken every two seconds at first, and less often in a long life.
const (
	sampleFirst = 2 * time.Second
	sampleLater = 5 * time.Second
	sampleMany  = time.Minute // how long at first
)

// guard looks at the watchdogs, and takes a sample when it is time for one.
func (l *life) guard(ctx context.Context) {
	h, facts := l.host, readHostFacts(l.o.Root)
	h.mu.Lock()
	now := l.o.Now()
	h.oom.look(now, facts)
	if h.first.IsZero() {
		h.first = now
	}
	every := sampleFirst
	if now.Sub(h.first) > sampleMany {
		every = sampleLater
	}
	due := now.Sub(h.last) >= every
	if due {
		h.last = now
	}
	h.peakGTT, h.minMem = extreme(h.peakGTT, facts.GTTUsedGiB, 1), extreme(h.minMem, facts.MemAvailableGiB, -1)
	base, loading := h.atLoad.GTTUsedGiB, h.loading
	h.mu.Unlock()
	w := l.plan.Watchdogs
	l.needs("watchdogs.mem_available_gib", w.MemAvailableGiB > 0, facts.MemAvailableGiB)
	l.needs("watchdogs.gtt_growth_gib", w.GTTGrowthGiB > 0, facts.GTTUsedGiB)
	if v := facts.MemAvailableGiB; w.MemAvailableGiB > 0 && v != nil && !(*v >= w.MemAvailableGiB) {
		l.bark(watchdogRecord{watchMemory, *v, w.MemAvailableGiB})
	}
	if v := facts.GTTUsedGiB; w.GTTGrowthGiB > 0 && loading && base != nil && v != nil && !(*v-*base < w.GTTGrowthGiB) {
		l.bark(watchdogRecord{watchGTT, *v - *base, w.GTTGrowthGiB})
	}
	if due {
		l.sample(ctx, facts)
	}
}

// oomKilled tells whether what ends now may have been killed for memory.
func (h *hostWatch) oomKilled(now time.Time, facts HostFacts) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.oom.look(now, facts)
}

// patience is how many looks in a row a sensor may tell nothing.
const patience = 3

// needs ends the life once a sensor that the plan asks for has been silent for
// too long: nobody watches what it was to tell.
func (l *life) needs(key string, asked bool, v *float64) {
	h := l.host
	h.mu.Lock()
	if h.missing == nil {
		h.missing = map[string]int{}
	}
	h.missing[key]++
	if v != nil {
		h.missing[key] = 0
	}
	n := h.missing[key]
	h.mu.Unlock()
	l.lacks(key, asked && n >= patience)
}

// lacks ends the life for a sensor that tells nothing any more. Once the load is
// complete it is no longer needed.
func (l *life) lacks(key string, lost bool) {
	if lost && l.reason() == "" {
		l.end(whySensor, "the sensor of "+key+" tells nothing any more")
	}
}

// extreme keeps the larger value (sign 1) or the smaller one (sign -1).
func extreme(old, v *float64, sign float64) *float64 {
	if old == nil || v != nil && sign**v > sign**old {
		return v
	}
	return old
}

// limit ends a life that lasts too long. What is in flight then has the time to
// show that it hangs, which is no outside cause: only what comes after its
// deadline is given up. The returned function ends the watch.
func (l *life) limit() func() {
	d := time.Duration(l.plan.Watchdogs.Life)
	if d <= 0 {
		return func() {}
	}
	soon := time.AfterFunc(d, func() {
		l.mu.Lock()
		l.tooLong = true
		l.mu.Unlock()
	})
	late := time.AfterFunc(d+time.Duration(l.plan.Load.RequestDeadline)+exitWait, l.overdue)
	return func() {
		soon.Stop()
		late.Stop()
	}
}

func (l *life) overdue() {
	limit := time.Duration(l.plan.Watchdogs.Life).Seconds()
	l.bark(watchdogRecord{Reason: watchLife, Value: float64(l.us()) / usPerSecond, Limit: limit})
}

func (l *life) isTooLong() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tooLong
}

// bark ends the life for a cause outside of the server. The questions after the
// load are part of it; once the server is told to end nothing is.
func (l *life) bark(rec watchdogRecord) {
	l.mu.Lock()
	over := l.barked || l.stopped || l.why != "" && l.why != whyDone
	l.barked = l.barked || !over
	l.mu.Unlock()
	if over {
		return
	}
	l.put(recordWatchdog, rec, true)
	l.end(whyWatchdog, fmt.Sprintf("the watchdog of %s saw %.2f, the limit is %.2f", rec.Reason, rec.Value, rec.Limit))
}

// sample appends the state of host and server, and looks at the temperature and
// at who listens: both take too long for every guard.
func (l *life) sample(ctx context.Context, facts HostFacts) {
	h := l.host
	l.mu.Lock()
	s := sample{
		At: l.o.Now(), US: l.us(), MemAvailableGiB: facts.MemAvailableGiB, GTTUsedGiB: facts.GTTUsedGiB,
		LoadAverage: facts.LoadAverage, Requests: l.ended,
	}
	process := l.server
	l.mu.Unlock()
	s.Devices, _ = h.sensors.Devices(ctx) // a host without a GPU tells of none
	for _, d := range s.Devices {
		s.TempC = extreme(s.TempC, d.TempC, 1)
	}
	if process != nil {
		pids := process.Members()
		h.seen(pids)
		s.ServerMiB = residentMiB(l.o.Root, pids...)
		if ms, ok := h.sensors.EvictedMS(pids); ok {
			s.EvictedMS = &ms
		}
		l.sameListener()
	}
	h.mu.Lock()
	h.maxTemp = extreme(h.maxTemp, s.TempC, 1)
	if s.ServerMiB != nil && h.loading {
		h.memory = append(h.memory, detect.Sample{Requests: s.Requests, MiB: *s.ServerMiB})
	}
	h.mu.Unlock()
	limit := l.plan.Watchdogs.TempC
	l.needs("watchdogs.temp_c", limit > 0, s.TempC)
	if limit == 0 {
		limit = defaultTempC
	}
	if s.TempC != nil && !(*s.TempC < limit) {
		l.bark(watchdogRecord{watchTemp, *s.TempC, limit})
	}
	l.fail(appendLine(filepath.Join(l.dir, SamplesName), s))
}

func appendLine(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a line of %s: %w", filepath.Base(path), err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("append to %s: %w", filepath.Base(path), err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("append to %s: %w", filepath.Base(path), err)
	}
	return nil
}

// regime records the conditions at the first request and tells whether they are
// those of the plan.
func (l *life) regime(ctx context.Context) bool {
	facts := readHostFacts(l.o.Root)
	rec := loadRecord{GTTUsedGiB: facts.GTTUsedGiB, MemAvailableGiB: facts.MemAvailableGiB}
	ours := append(l.fence.members(), os.Getpid())
	residents, _ := l.host.sensors.Residents(ctx, ours...) // a host without a GPU has none
	for _, p := range residents {
		r := Resident{PID: p.PID, Command: p.Command}
		if p.Bytes != nil {
			r.MiB = float64(*p.Bytes) / (1 << 20)
		}
		rec.Residents = append(rec.Residents, r)
	}
	l.host.seen(l.server.Members())
	l.host.findDevices(ctx)
	l.host.mu.Lock()
	l.host.atLoad, l.host.loading = facts, true
	if ms, ok := l.host.sensors.EvictedMS(l.server.Members()); ok {
		l.host.evictedAt = &ms
	}
	rec.KernelLog = l.host.kernel
	l.host.mu.Unlock()
	l.put(recordLoad, rec, true)
	g, w := l.plan.Gates, l.plan.Watchdogs
	l.lacks("gates.gtt_used_gib", g.GTTUsedGiB != nil && facts.GTTUsedGiB == nil)
	l.lacks("gates.mem_available_gib", g.MemAvailableGiB > 0 && facts.MemAvailableGiB == nil)
	l.lacks("watchdogs.gtt_growth_gib", w.GTTGrowthGiB > 0 && facts.GTTUsedGiB == nil)
	if l.reason() != "" {
		return false
	}
	l.sample(ctx, facts) // however short the load is, memory is seen before and after it
	a := newArm(l.plan, l.table, l.begin)
	a.load = &rec
	if reason, detail := a.outOfRegime(); reason != "" {
		l.end(whyRegime, detail)
		return false
	}
	return true
}

// maxKernelRecords bounds what a life records of the kernel's log, which can
// tell of evictions several times a second.
const maxKernelRecords = 1000

// followKernel reads the kernel's log until the context ends.
func (l *life) followKernel(ctx context.Context) {
	err := gpu.Follow(ctx, l.o.Root, func(ev gpu.Event) { l.kernel(ctx, ev) })
	if err != nil && ctx.Err() == nil {
		l.host.mu.Lock()
		l.host.kernel = err.Error()
		l.host.mu.Unlock()
		l.o.Log.Debug("follow the kernel log", "error", err)
	}
}

// seen adds processes to those of the server, and gives all that there were and
// the devices that they had open: what the kernel says of a server is read when
// it may be gone already.
func (h *hostWatch) seen(pids []int) (all []int, devices []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, pid := range pids {
		if !slices.Contains(h.pids, pid) {
			h.pids = append(h.pids, pid)
		}
	}
	return slices.Clone(h.pids), slices.Clone(h.devices)
}

// findDevices looks which devices the server's processes have open, and gives
// those that they had open before too.
func (h *hostWatch) findDevices(ctx context.Context) []string {
	users, _ := h.sensors.Processes(ctx) // a host without a GPU has none
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, u := range users {
		for _, d := range u.Devices {
			if slices.Contains(h.pids, u.PID) && !slices.Contains(h.devices, d) {
				h.devices = append(h.devices, d)
			}
		}
	}
	return slices.Clone(h.devices)
}

func (l *life) kernel(ctx context.Context, ev gpu.Event) {
	l.mu.Lock()
	process := l.server
	l.mu.Unlock()
	if process == nil {
		return
	}
	pids, devices := l.host.seen(process.Members())
	if len(devices) == 0 {
		devices = l.host.findDevices(ctx)
	}
	ours := ev.Ours(pids, []string{filepath.Base(l.arm.Server.Name), "llama-server"}, devices)
	l.host.mu.Lock()
	l.host.kernelSeen++
	many := l.host.kernelSeen > maxKernelRecords
	l.host.mu.Unlock()
	if many && (!ev.Fault || ours == "") {
		return
	}
	l.put(recordKernel, kernelRecord{Event: ev, Ours: ours}, ev.Fault)
	l.found(l.faces.Kernel(ev, ours))
}

// measured fills the end's record with what was seen of the host.
func (l *life) measured(rec *endRecord) {
	h := l.host
	h.mu.Lock()
	defer h.mu.Unlock()
	rec.PeakGTTGiB, rec.MinMemGiB, rec.MaxTempC, rec.EvictedMS = h.peakGTT, h.minMem, h.maxTemp, h.evicted
	if n := len(h.memory); n > 0 {
		rec.ServerMiB = &h.memory[n-1].MiB
	}
	if g := detect.GrowthPerRequest(h.memory); !math.IsNaN(g) {
		rec.ServerMiBPerReq = &g
	}
}

// loadOver ends what is measured of the load alone.
func (l *life) loadOver(ctx context.Context) {
	l.sample(ctx, readHostFacts(l.o.Root))
	ms, ok := l.host.sensors.EvictedMS(l.server.Members())
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	l.host.loading = false
	l.lacks("gates.evicted_ms", l.plan.Gates.EvictedMS > 0 && l.host.evictedAt != nil && !ok)
	if ok && l.host.evictedAt != nil {
		delta := ms - *l.host.evictedAt
		l.host.evicted = &delta
	}
}
