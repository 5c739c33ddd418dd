package fakeengine

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	guardV1   = "HRX returned NaN logits at vocab index 0 - refusing to sample a silently wrong token (engine#123)"
	guardV2   = "common_sampler_sample: HRX returned NaN logits: count=258 of 258, index range [0..257], contiguous=yes, continuing="
	abortText = "/src/llama.cpp/common/sampling.cpp:620: HRX: NaN logits (engine#123)"
	assertion = "/src/llama.cpp/ggml/src/ggml-hrx/ggml-hrx.cpp:1411: GGML_ASSERT(buffer != nullptr) failed"
	hsaError  = "hrx: HSA_STATUS_ERROR_EXCEPTION: an HSAIL operation resulted in a hardware exception"
)

// A logger writes lines as llama-server does.
type logger struct {
	mu     sync.Mutex
	w      io.Writer
	start  time.Time
	step   time.Duration // what the clock is ahead by
	format string
}

func (l *logger) line(level byte, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%s%s\n", l.prefix(level), fmt.Sprintf(format, args...))
}

// prefix is time since the start and level.
func (l *logger) prefix(level byte) string {
	if l.format == "bare" || l.format == "old" {
		return ""
	}
	t := time.Since(l.start) + l.step
	s := fmt.Sprintf("%d.%02d.%03d.%03d %c ", int(t.Minutes()), int(t.Seconds())%60, t.Milliseconds()%1000, t.Microseconds()%1000, level)
	if l.format == "router" {
		return "[60671] " + s
	}
	return s
}

// bare writes a line without prefix, as an abort does.
func (l *logger) bare(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, text)
}

// jump sets the clock.
func (l *logger) jump(step time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step = step
}

// selected words the choice of a slot by its age.
func (l *logger) selected(tokens int, last int64) string {
	if l.format == "old" {
		return fmt.Sprintf("selected slot by LRU, t_last = %d", last)
	}
	return fmt.Sprintf("selected slot by LRU, n_tokens = %d, t_last = %d", tokens, last)
}

// alike words the choice of a slot by the beginning of its last prompt.
func (l *logger) alike(share float64) string {
	name := "f_sim_best"
	if l.format == "old" {
		name = "sim_best"
	}
	return fmt.Sprintf("selected slot by LCP similarity, %s = %.3f (> 0.100 thold), f_keep = 0.500", name, share)
}

// timing writes the timings of a task that has ended.
func (l *logger) timing(slot, task, prompt, tokens int, perToken time.Duration) {
	ms := func(n int) float64 { return float64(n) * float64(perToken.Microseconds()) / 1000 }
	lines := []string{
		fmt.Sprintf("prompt eval time = %10.2f ms / %5d tokens (%8.2f ms per token, %8.2f tokens per second)", ms(1), prompt, ms(1)/float64(max(1, prompt)), 1000*float64(prompt)/max(ms(1), 1e-3)),
		fmt.Sprintf("       eval time = %10.2f ms / %5d tokens (%8.2f ms per token, %8.2f tokens per second)", ms(tokens), tokens, ms(1), 1000/max(ms(1), 1e-3)),
		fmt.Sprintf("      total time = %10.2f ms / %5d tokens", ms(tokens+1), prompt+tokens),
		fmt.Sprintf("   graphs reused = %10d", max(0, tokens-1)),
	}
	if l.format == "old" {
		l.line('I', "slot print_timing: id %2d | task %d | ", slot, task)
		for _, text := range lines {
			l.line('I', "%s", text)
		}
		return
	}
	for _, text := range lines {
		l.line('I', "slot print_timing: id %2d | task %d | %s", slot, task, text)
	}
}
