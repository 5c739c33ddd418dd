package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// deviceFolders are where the nodes of GPUs and NPUs lie.
var deviceFolders = [...]string{"/dev/kfd", "/dev/dri/", "/dev/accel/", "/dev/nvidia", "/dev/dxg"}

// devices lists the GPUs that processes have open or mapped, sorted, each once. A server that fell back to the CPU
// has none.
func devices(proc string, procs []procInfo) []string {
	var found []string
	for _, p := range procs {
		paths := slices.Clone(p.maps)
		dir := filepath.Join(proc, strconv.Itoa(p.pid), "fd")
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
				paths = append(paths, target)
			}
		}
		for _, path := range paths {
			isDevice := slices.ContainsFunc(deviceFolders[:], func(folder string) bool { return strings.HasPrefix(path, folder) })
			if isDevice && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
	}
	slices.Sort(found)
	return found
}

// askedDevice is the device that the server among the processes was told to use, "" for none: the youngest process
// that was told decides, since the front end is told in its own words.
func askedDevice(procs []procInfo) string {
	asked := ""
	var youngest procInfo
	for _, p := range procs {
		value, ok := option(p.argv, "--device", "-dev")
		if !ok {
			value, ok = lookup(p.env, "LLAMA_ARG_DEVICE")
		}
		if ok && (youngest.pid == 0 || !p.since.Before(youngest.since)) {
			asked, youngest = value, p
		}
	}
	return asked
}

// moved says why a service that served on certain devices is on another one now, "" where it is not. Where nothing
// ran before, nothing is known.
func moved(was, now []string) string {
	if len(was) == 0 || slices.ContainsFunc(now, func(d string) bool { return slices.Contains(was, d) }) {
		return ""
	}
	if len(now) == 0 {
		return "it has no GPU open, and before it had " + strings.Join(was, ", ") + ": it runs on the CPU"
	}
	return "it runs on " + strings.Join(now, ", ") + " and before on " + strings.Join(was, ", ")
}
