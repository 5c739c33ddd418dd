package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// smiPatience is how long nvidia-smi may take. It hangs when the driver does.
const smiPatience = 10 * time.Second

// smi asks nvidia-smi for rows of so many fields; the last field may hold commas.
func (s Sensors) smi(ctx context.Context, query string, fields int) ([][]string, error) {
	if s.SMI == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, smiPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.SMI, query, "--format=csv,noheader,nounits")
	cmd.Env, cmd.WaitDelay = []string{"LC_ALL=C"}, time.Second
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if ctx.Err() == nil && errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, excerpt(append(out, exit.Stderr...)))
		}
		return nil, fmt.Errorf("run %s %s: %w", s.SMI, query, err)
	}
	return smiRows(out, fields), nil
}

// smiRows splits what nvidia-smi printed. Lines of another shape, such as "No running processes found", are no rows.
func smiRows(out []byte, fields int) [][]string {
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		row := strings.SplitN(line, ",", fields)
		if len(row) != fields {
			continue
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	return rows
}

func (s Sensors) smiDevices(ctx context.Context) ([]Device, error) {
	rows, err := s.smi(ctx, "--query-gpu=pci.bus_id,memory.used,memory.total,temperature.gpu,name", 5)
	var devices []Device
	for _, r := range rows {
		d := Device{PCI: busID(r[0]), Driver: "nvidia", Name: r[4], VRAMUsedBytes: mebibytes(r[1]), VRAMTotalBytes: mebibytes(r[2])}
		if t, err := strconv.ParseFloat(r[3], 64); err == nil {
			d.TempC = &t
		}
		devices = append(devices, d)
	}
	return devices, err
}

// smiHoldings are the bytes of each compute program on each device, nil where nvidia-smi says [N/A].
func (s Sensors) smiHoldings(ctx context.Context) ([]holding, error) {
	rows, err := s.smi(ctx, "--query-compute-apps=gpu_bus_id,pid,used_gpu_memory", 3)
	var held []holding
	for _, r := range rows {
		if pid := atoi(r[1]); pid > 0 {
			held = append(held, holding{pid: pid, device: busID(r[0]), bytes: mebibytes(r[2])})
		}
	}
	return held, err
}

// mebibytes reads a number of MiB as bytes; nil for "[N/A]" and the like.
func mebibytes(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return nil
	}
	n <<= 20
	return &n
}

// nvidiaMinors tells which device is which /dev/nvidia file.
func (s Sensors) nvidiaMinors() map[string]string {
	minors := map[string]string{}
	for _, path := range glob(s.path("proc/driver/nvidia/gpus/*/information")) {
		for line := range strings.Lines(readText(path)) {
			if minor, ok := strings.CutPrefix(line, "Device Minor:"); ok {
				minors["/dev/nvidia"+strings.TrimSpace(minor)] = busID(filepath.Base(filepath.Dir(path)))
			}
		}
	}
	return minors
}

// excerpt quotes the beginning of what a program said.
func excerpt(b []byte) string {
	const most = 160
	b = bytes.TrimSpace(b)
	return fmt.Sprintf("%q", b[:min(len(b), most)])
}
