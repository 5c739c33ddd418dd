package load

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Buckets touch, none is wider than 1 % of what it holds, and a value lies in
// its own.
func TestBuckets(t *testing.T) {
	next := int64(0)
	for i := 0; next < math.MaxInt64; i++ {
		from, to := bucketRange(i)
		if from != next || to < from || float64(to-from) > 0.01*float64(from) {
			t.Fatalf("bucket %d is from %d to %d, want it from %d", i, from, to, next)
		}
		if bucketOf(from) != i || bucketOf(to) != i {
			t.Fatalf("%d and %d lie in %d and %d, not in %d", from, to, bucketOf(from), bucketOf(to), i)
		}
		if to == math.MaxInt64 {
			break
		}
		next = to + 1
	}
}

func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	for _, n := range []int{1, 2, 3, 10, 1000, 20000} {
		var h Histogram
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(math.Exp(rng.Float64() * 20))
			h.Record(values[i])
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
			exact := values[max(1, int(math.Ceil(q*float64(n))))-1]
			if got := h.Quantile(q); got < exact || float64(got-exact) > 0.01*float64(exact) {
				t.Errorf("%d values, %v: %d, exactly %d", n, q, got, exact)
			}
		}
		var sum float64
		for _, v := range values {
			sum += float64(v)
		}
		if h.Count() != uint64(n) || h.Min() != values[0] || h.Max() != values[n-1] || math.Abs(h.Mean()-sum/float64(n)) > 1e-6*sum {
			t.Errorf("%d values: %d, from %d to %d, mean %v", n, h.Count(), h.Min(), h.Max(), h.Mean())
		}
	}
	var none Histogram
	if none.Quantile(0.5) != 0 || none.Mean() != 0 || none.Buckets() != nil {
		t.Error("an empty histogram has values")
	}
	none.Record(-5)
	if none.Max() != 0 || none.Count() != 1 || none.Quantile(math.NaN()) != 0 {
		t.Error("a value below 0 does not count as 0")
	}
}

func TestMergeAndJSON(t *testing.T) {
	var all, a, b Histogram
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		v := rng.Int64N(1 << rng.IntN(40))
		all.Record(v)
		[]*Histogram{&a, &b}[rng.IntN(2)].Record(v)
	}
	a.Merge(&b)
	a.Merge(&Histogram{})
	var empty Histogram
	empty.Merge(&a)
	for name, h := range map[string]*Histogram{"merged": &a, "merged into an empty one": &empty} {
		want, err := json.Marshal(&all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(h)
		if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		var read Histogram
		if err := json.Unmarshal(got, &read); err != nil || read.Quantile(0.99) != all.Quantile(0.99) || read.Mean() != all.Mean() || read.Count() != all.Count() {
			t.Errorf("%s: reads as %+v, %v", name, read, err)
		}
	}
	for _, bad := range []string{
		`{"min":5,"max":1,"counts":[[3,1]]}`, `{"min":3,"max":3,"counts":[[3,0]]}`, `{"min":3,"max":4,"counts":[[4,1],[3,1]]}`,
		`{"counts":[[-1,1]]}`, `{"min":1,"max":1,"counts":[[1,9223372036854775808]]}`, `[]`,
	} {
		if err := json.Unmarshal([]byte(bad), &a); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
