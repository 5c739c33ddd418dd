package acceptance

import (
	"fmt"
	"time"

	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

// pace is how fast a host is: between the best and the worst that is assumed.
type pace struct {
	load      [2]float64 // seconds from a server's start until it is ready
	generated [2]float64 // tokens a second, all slots together
	prompted  [2]float64 // prompt tokens a second
	assumed   []string
}

// Between these the bandwidth of memory and of disks lies, in bytes a second:
// a token needs the whole model once from memory, a start once from the disk.
// Several slots share one reading of it, and a mixture of experts needs a part.
const (
	slowMemory = 20e9
	fastMemory = 2e12
	slowDisk   = 200e6
	fastDisk   = 5e9
)

const (
	leastRate, mostRate = 20, 5000    // tokens a second that are assumed at the ends
	unknownModel        = int64(20e9) // bytes, where its size is not known
	promptGain          = 5.0         // prompt tokens a second for each generated one
	startSeconds        = 0.1         // of a server without its model
	endSeconds, endMost = 0.1, 10.0   // of a life: identical requests, stop
	leadMost            = 30.0        // seconds that a neighbour needs for its first work
)

// pace fills in what is not known.
func (in EstimateInput) pace() pace {
	small, large := in.ModelBytes, in.ModelBytes
	size := "the model's size"
	if in.ModelBytes == 0 {
		small, large = 1, unknownModel
		size = "a model of any size, for its file is not there"
	}
	p := pace{}
	if in.LoadTime > 0 {
		p.load = [2]float64{in.LoadTime.Seconds(), in.LoadTime.Seconds()}
		p.assumed = append(p.assumed, fmt.Sprintf("a start takes %s, as told", in.LoadTime))
	} else {
		p.load = [2]float64{startSeconds + float64(small)/fastDisk, 1 + float64(large)/slowDisk}
		p.assumed = append(p.assumed, fmt.Sprintf("a start takes %s to %s, from %s", shortTime(p.load[0]), shortTime(p.load[1]), size))
	}
	if in.TokensPerSecond > 0 {
		p.generated = [2]float64{in.TokensPerSecond, in.TokensPerSecond}
		p.assumed = append(p.assumed, fmt.Sprintf("%g tokens a second on all slots, as told", in.TokensPerSecond))
	} else {
		p.generated = [2]float64{
			min(mostRate, max(leastRate, fastMemory/float64(small))),
			min(mostRate/5, max(leastRate, slowMemory/float64(large))),
		}
		p.assumed = append(p.assumed, fmt.Sprintf("%.0f to %.0f tokens a second on all slots, from %s", p.generated[1], p.generated[0], size))
	}
	p.prompted = [2]float64{promptGain * p.generated[0], promptGain * p.generated[1]}
	return p
}

// duration is the least and the most that the plan takes, in seconds. The most
// has every attempt used up; a fault, which may end a run at once, is in
// neither.
func (p *Plan) duration(pace pace) (least, most float64) {
	var longest float64
	for i, a := range p.Arms {
		l := p.life(i, 1)
		var life [2]float64
		for end := range life {
			life[end] = pace.load[end] + p.loadSeconds(l, pace, end)
		}
		life[0] += endSeconds
		life[1] += endMost
		if l.Neighbour != nil && l.Neighbour.Kind != neighbour.None {
			life[1] += min(leadMost, time.Duration(l.Neighbour.Lead).Seconds())
		}
		least += float64(a.Lives) * life[0]
		most += float64(a.Lives) * life[1]
		longest = max(longest, life[1])
	}
	return least, most + float64(p.Attempts-len(p.Lives()))*longest
}

// loadSeconds is how long the load of a life takes at one end of the pace.
func (p *Plan) loadSeconds(l PlannedLife, pace pace, end int) float64 {
	if l.Load.Duration > 0 {
		return time.Duration(l.Load.Duration).Seconds()
	}
	n := float64(l.Load.Requests)
	seconds := n * (mean(l.Load.PromptTokens)/pace.prompted[end] + mean(l.Load.NPredict)/pace.generated[end])
	if l.Load.Schedule == ScheduleBurst {
		bursts := (l.Load.Requests + l.Load.InFlight - 1) / l.Load.InFlight
		seconds = max(seconds, float64(bursts-1)*time.Duration(l.Load.Every).Seconds())
	}
	return seconds
}

func mean(list []int) float64 {
	sum := 0.0
	for _, v := range list {
		sum += float64(v)
	}
	return sum / float64(len(list))
}

// shortTime is a number of seconds for people.
func shortTime(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}
