package systemd

import "testing"

func TestBadSpan(t *testing.T) {
	good := []string{"0", "5", "5s", "1.5", ".5", "1min 20s", "1h30", "2 weeks", "1y2M3d", "3 sec", "infinity", " infinity ", "100ms",
		"1µs", "+5", "12.34 .56", "12.34s.56", "5 5", "000000000000000001"}
	bad := []string{"", " ", "abc", "-1", "5x", "5 xyz", "1.2.3", "3.", "3.sec", "s", "infinity 5", "Infinity", "5s,", "+", "+ 5", "1,5", "1e3", "0x5", "3. 1",
		"99999999999999999", "99999999999999999999", "10000000000000s 9000000000000s"}
	for _, text := range good {
		if badSpan(text) {
			t.Errorf("%q is bad", text)
		}
	}
	for _, text := range bad {
		if !badSpan(text) {
			t.Errorf("%q is good", text)
		}
	}
}

// spanTexts are good and bad ones for a real systemd to judge.
var spanTexts = []string{"5", "0", "1min", "infinity", "1h 5min", "2.5s", ".5", "100ms", "3 weeks", "", "abc", "-1", "5x", "1.2.3", "3.", "s", "+5", "5s,", "3. 1",
	"1µs", "1 μs", "1y", "1M", "1 m", "2hr", "7days", "5 5", "12.34s.56", "infinity 5", "Infinity", "0x5", "%h", "99999999999999999"}

// FuzzBadSpan: every text is read to its end, and white space around it does not matter.
func FuzzBadSpan(f *testing.F) {
	for _, seed := range spanTexts {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if badSpan(text) != badSpan(" "+text+"\t") {
			t.Errorf("%q: white space matters", text)
		}
	})
}
