package load

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
)

// subBuckets is how many buckets of equal width a power of two is cut into:
// none is wider than 1/128 of its value.
const (
	subBits    = 7
	subBuckets = 1 << subBits
)

// A Histogram counts values, such as latencies in µs. Values below 256 are
// exact, all others known to 0.8 %. The zero value is empty. It is not for
// several goroutines at once.
type Histogram struct {
	counts   []uint64 // by bucket
	n        uint64
	sum      float64
	min, max int64
}

// A Bucket is how many values lie between two, both included.
type Bucket struct {
	From, To int64
	N        uint64
}

// Record counts a value. One below 0 counts as 0.
func (h *Histogram) Record(v int64) { h.add(max(0, v), 1) }

func (h *Histogram) add(v int64, n uint64) {
	i := bucketOf(v)
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, i+1-len(h.counts))...)
	}
	h.counts[i] += n
	if h.n == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.n += n
	h.sum += float64(v) * float64(n)
}

// Merge adds all values of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	if o.n == 0 {
		return
	}
	if grow := len(o.counts) - len(h.counts); grow > 0 {
		h.counts = append(h.counts, make([]uint64, grow)...)
	}
	for i, n := range o.counts {
		h.counts[i] += n
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	h.n += o.n
	h.sum += o.sum
}

// Count is the number of values.
func (h *Histogram) Count() uint64 { return h.n }

// Min and Max are exact; 0 if there are no values.
func (h *Histogram) Min() int64 { return h.min }

// Max is the largest value.
func (h *Histogram) Max() int64 { return h.max }

// Mean is exact as far as a float64 is; 0 if there are no values.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	return h.sum / float64(h.n)
}

// Quantile gives the smallest value that at least the share q of all values do
// not exceed, to the width of its bucket and never too low: 0.5 is the median,
// 1 the maximum. 0 if there are no values.
func (h *Histogram) Quantile(q float64) int64 {
	if h.n == 0 || math.IsNaN(q) {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.n)))
	rank = min(max(rank, 1), h.n)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			_, to := bucketRange(i)
			return max(h.min, min(to, h.max))
		}
	}
	return h.max
}

// Buckets lists those that hold values, from the smallest on.
func (h *Histogram) Buckets() []Bucket {
	var all []Bucket
	for i, n := range h.counts {
		if n > 0 {
			from, to := bucketRange(i)
			all = append(all, Bucket{from, to, n})
		}
	}
	return all
}

// bucketOf numbers the buckets: one a value below subBuckets, then subBuckets a
// power of two.
func bucketOf(v int64) int {
	u := uint64(v)
	shift := max(0, bits.Len64(u)-subBits-1)
	return shift<<subBits + int(u>>shift)
}

func bucketRange(i int) (from, to int64) {
	if i < 2*subBuckets {
		return int64(i), int64(i)
	}
	shift := i>>subBits - 1
	low := uint64(i-shift<<subBits) << shift
	return int64(low), int64(low + 1<<shift - 1)
}

// histogramJSON is a histogram in a file. Counts holds pairs: a bucket's
// smallest value and its count.
type histogramJSON struct {
	Min    int64       `json:"min"`
	Max    int64       `json:"max"`
	Sum    float64     `json:"sum"`
	Counts [][2]uint64 `json:"counts"`
}

// MarshalJSON writes {"min","max","sum","counts":[[value,count],…]}.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	out := histogramJSON{Min: h.min, Max: h.max, Sum: h.sum, Counts: [][2]uint64{}}
	for _, b := range h.Buckets() {
		out.Counts = append(out.Counts, [2]uint64{uint64(b.From), b.N})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var in histogramJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("read histogram: %w", err)
	}
	read := Histogram{}
	for i, c := range in.Counts {
		ordered := i == 0 || c[0] > in.Counts[i-1][0]
		if c[0] > math.MaxInt64 || c[1] == 0 || c[1] > math.MaxInt64-read.n || !ordered {
			return fmt.Errorf("read histogram: no count of values: [%d,%d]", c[0], c[1])
		}
		read.add(int64(c[0]), c[1])
	}
	if read.n > 0 {
		if in.Min < 0 || bucketOf(in.Min) != bucketOf(read.min) || in.Max < 0 || bucketOf(in.Max) != bucketOf(read.max) {
			return fmt.Errorf("read histogram: minimum %d and maximum %d do not fit its counts", in.Min, in.Max)
		}
		read.min, read.max, read.sum = in.Min, in.Max, in.Sum
	}
	*h = read
	return nil
}
