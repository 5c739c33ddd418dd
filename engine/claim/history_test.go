package claim

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", HistoryFile)
	at := func(minute int) time.Time { return time.Date(2026, 10, 23, 10, minute, 0, 0, time.UTC) }
	claims := []Record{
		{Label: "first", PID: 1, Since: at(0), Until: at(30)},
		{Label: "second", PID: 2, Since: at(20), Until: at(40)},
		{Label: "no end", PID: 3, Since: at(41), Until: at(50)},
	}
	if list, err := ReadHistory(path, at(0), at(59)); len(list) > 0 || err != nil {
		t.Errorf("no history: %v, %v", list, err)
	}
	for i, r := range claims {
		if err := remember(path, r); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			continue
		}
		end := r.Since.Add(10 * time.Minute)
		claims[i].Ended, claims[i].How = &end, "exit status 0"
		if err := remember(path, claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("not ours\n{\"label\":\"torn\",\"since\":\"2026-10-23T10:4")
	f.Close()
	for _, test := range []struct {
		from, to int
		want     []Record
	}{
		{0, 59, claims}, {11, 19, nil}, {10, 19, claims[:1]}, {25, 26, claims[1:2]}, {31, 40, nil}, {45, 45, claims[2:]}, {51, 59, nil},
	} {
		list, err := ReadHistory(path, at(test.from), at(test.to))
		if diff := cmp.Diff(test.want, list); err != nil || diff != "" && len(test.want)+len(list) > 0 {
			t.Errorf("10:%02d to 10:%02d: %v (-want +got):\n%s", test.from, test.to, err, diff)
		}
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"label":"a","pid":1,"since":"2026-10-23T10:00:00Z","until":"2026-10-23T10:30:00Z"}` + "\n{}\n\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := readHistory(bytes.NewReader(b), time.Time{}, time.Unix(1<<40, 0))
		if err != nil || len(list) > bytes.Count(b, []byte("\n")) {
			t.Errorf("%v, %v", list, err)
		}
	})
}
