package gpu

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// AMD's compute driver keeps a folder for every process that has it open: /sys/class/kfd/kfd/proc/PID, and since it
// allows several contexts, more of them below it as context_N or beside it as pid:PID-id:N. Each has vram_GPU (bytes)
// and stats_GPU/evicted_ms for every device that it knows; GPU is the driver's own id.

func (s Sensors) kfdFolders(pid int) []string {
	proc, name := s.path("sys/class/kfd/kfd/proc"), strconv.Itoa(pid)
	dirs := append(glob(filepath.Join(proc, name)), glob(filepath.Join(proc, "pid:"+name+"-id:*"))...)
	for _, dir := range dirs {
		dirs = append(dirs, glob(filepath.Join(dir, "context_*"))...)
	}
	return dirs
}

// EvictedMS sums for how long, in milliseconds, the driver kept the compute queues of the processes off their devices;
// queues of several devices add up, so it may be more than the time that passed. It only grows while a process lives
// and is gone with it: read it before the process ends. ok is false if the host tells it for none of them.
func (s Sensors) EvictedMS(pids []int) (ms int64, ok bool) {
	for _, pid := range pids {
		for _, dir := range s.kfdFolders(pid) {
			for _, path := range glob(filepath.Join(dir, "stats_*/evicted_ms")) {
				if n := number(path); n != nil {
					ms, ok = ms+*n, true
				}
			}
		}
	}
	return ms, ok
}

// kfdHoldings are the bytes of video memory that the compute driver accounts to each process.
func (s Sensors) kfdHoldings() []holding {
	var held []holding
	devices := s.kfdDevices()
	for _, path := range glob(s.path("sys/class/kfd/kfd/proc/[0-9]*")) {
		pid := atoi(filepath.Base(path))
		if pid == 0 {
			continue
		}
		sums := map[string]int64{}
		for _, dir := range s.kfdFolders(pid) {
			for _, file := range glob(filepath.Join(dir, "vram_*")) {
				if n := number(file); n != nil {
					sums[devices[strings.TrimPrefix(filepath.Base(file), "vram_")]] += *n
				}
			}
		}
		if len(sums) == 0 {
			held = append(held, holding{pid: pid})
		}
		for device, n := range sums {
			if n > 0 || device == "" { // it lists every device, used or not
				held = append(held, holding{pid, device, &n})
			}
		}
	}
	return held
}

// kfdDevices gives the PCI address of the driver's ids. location_id is bus, device and function in one number.
func (s Sensors) kfdDevices() map[string]string {
	devices := map[string]string{}
	for _, node := range glob(s.path("sys/class/kfd/kfd/topology/nodes/*")) {
		id := strings.TrimSpace(readText(filepath.Join(node, "gpu_id")))
		if id == "" || id == "0" {
			continue // a CPU
		}
		var domain, location int
		for line := range strings.Lines(readText(filepath.Join(node, "properties"))) {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "domain":
				domain = atoi(value)
			case "location_id":
				location = atoi(value)
			}
		}
		devices[id] = fmt.Sprintf("%04x:%02x:%02x.%d", domain, location>>8&0xff, location>>3&0x1f, location&7)
	}
	return devices
}
