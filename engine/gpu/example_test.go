package gpu_test

import (
	"fmt"
	"strings"

	"github.com/1bit-systems/pkg/engine/gpu"
)

func ExampleKernelReader() {
	const log = `[ 1201.1] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.1 timeout, signaled seq=41, emitted seq=43
[ 1201.1] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process llama-server pid 5100 thread llama-server pid 5133
[ 1201.2] amdgpu 0000:0b:00.0: amdgpu: GPU reset begin!
[ 1204.0] [drm] VRAM is lost due to GPU reset!`
	var r gpu.KernelReader
	var events []gpu.Event
	for line := range strings.Lines(log) {
		events = append(events, r.Feed(line)...)
	}
	for _, e := range append(events, r.Flush()...) {
		fmt.Println(e.Kind, e.Device, e.Process, e.Ours([]int{5100}, nil, nil))
	}
	// Output:
	// ring-timeout 0000:0b:00.0 llama-server process
	// reset 0000:0b:00.0 llama-server process
	// vram-lost 0000:0b:00.0 llama-server process
}
