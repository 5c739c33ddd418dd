package cmd

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/internal/ui"
)

func newClaimStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show who has the GPU, and who waits for it", Args: between(0, 0),
		Long: `Show who holds the claim lock and until when, who waits for it in which order, every process
that has a GPU open, and the memory that is left. Of a holder that did not use this program
its process is shown, and what it wrote into the lock file.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runClaimStatus(cmd.Context()) },
	}
}

// claimStatus is the document of the command. What the host does not tell is null.
type claimStatus struct {
	Lock            string         `json:"lock"`
	Held            bool           `json:"held"`
	Holder          *claim.Record  `json:"holder"`
	Waiting         []claim.Record `json:"waiting"`
	GPUProcesses    []gpu.Process  `json:"gpu_processes"`
	MemAvailableGiB *float64       `json:"mem_available_gib"`
	FloorGiB        float64        `json:"floor_gib"`
}

func (a *app) runClaimStatus(ctx context.Context) error {
	lock, floor, err := a.claims()
	if err != nil {
		return err
	}
	s := claimStatus{Lock: lock.Path, FloorGiB: floor}
	if s.Holder, s.Held, err = lock.Holder(); err != nil {
		return err
	}
	waiting, err := lock.Waiting()
	if err != nil {
		return err
	}
	s.Waiting = append([]claim.Record{}, waiting...)
	processes, err := a.sensors().Processes(ctx)
	if err != nil {
		fmt.Fprintf(a.stderr, "note: not every GPU process is known: %v\n", err)
	}
	s.GPUProcesses = append([]gpu.Process{}, processes...)
	if have, err := claim.MemAvailable(""); err == nil {
		have = math.Round(have*100) / 100
		s.MemAvailableGiB = &have
	}
	return a.show(s, func(w io.Writer) error { return writeClaimStatus(w, s) })
}

func writeClaimStatus(w io.Writer, s claimStatus) error {
	switch {
	case s.Holder != nil:
		fmt.Fprintf(w, "%s is held by %s\n", ui.Clean(s.Lock), claimText(*s.Holder))
	case s.Held:
		fmt.Fprintf(w, "%s is held; nobody tells by whom\n", ui.Clean(s.Lock))
	default:
		fmt.Fprintf(w, "%s is free\n", ui.Clean(s.Lock))
	}
	for i, r := range s.Waiting {
		fmt.Fprintf(w, "waiting %d: %s\n", i+1, claimText(r))
	}
	for _, p := range s.GPUProcesses {
		size := ""
		if p.Bytes != nil {
			size = ", " + ui.Size(*p.Bytes)
		}
		fmt.Fprintf(w, "GPU open in process %d%s: %s\n", p.PID, size, ui.Clean(p.Command))
	}
	if s.MemAvailableGiB == nil {
		_, err := fmt.Fprintf(w, "memory left: not known; floor %g GiB\n", s.FloorGiB)
		return err
	}
	_, err := fmt.Fprintf(w, "memory left: %.1f GiB; floor %g GiB\n", *s.MemAvailableGiB, s.FloorGiB)
	return err
}

// claimText is a claim on one line.
func claimText(r claim.Record) string {
	text := r.String()
	if !r.Since.IsZero() {
		text += " since " + r.Since.Local().Format(time.DateTime)
	}
	return text
}
