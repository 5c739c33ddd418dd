package incident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// Bounds of what is read of earlier incidents.
const (
	maxEarlier  = 300
	maxReportMB = 16
)

// List gives the incidents below a folder, one for each end, the latest first; none where it is missing. problems says what could not be
// read.
func List(dir string) (all []Earlier, problems []string, err error) {
	folders, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	all = []Earlier{}
	read := 0
	for _, folder := range slices.Backward(folders) { // their names begin with the time
		if !folder.IsDir() || strings.HasPrefix(folder.Name(), ".") {
			continue
		}
		if read++; read > maxEarlier {
			problems = append(problems, fmt.Sprintf("there are more than %d, and the oldest were not looked at", maxEarlier))
			break
		}
		x, err := readEarlier(filepath.Join(dir, folder.Name()))
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		all = append(all, x)
	}
	all = byEvent(all)
	slices.SortStableFunc(all, func(a, b Earlier) int { return b.At.Compare(a.At) })
	return all, problems, nil
}

// byEvent makes one of the reports of one end, which a watch and a person may have written: the oldest, of which there
// are others. all begins with the newest.
func byEvent(all []Earlier) []Earlier {
	at := map[string]int{}
	out := []Earlier{}
	for _, x := range all {
		i, seen := at[x.Event]
		if !seen || x.Event == "" {
			at[x.Event] = len(out)
			out = append(out, x)
			continue
		}
		x.Again = out[i].Again + 1
		out[i] = x
	}
	return out
}

// earlier lists the incidents of this unit, or of another one that ran from a package of the same flavour, that were
// written down before, the latest first.
func (g *gatherer) earlier() {
	if g.o.Incidents == "" {
		return
	}
	all, problems, err := List(g.o.Incidents)
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, problem := range problems {
		g.miss("earlier incidents: %s", problem)
	}
	flavour := ""
	if g.e.Package != nil {
		flavour = flavourOf(g.e.Package.Name)
	}
	event := Analyse(g.e).Event // a report of the same end is none of an earlier one
	for _, x := range all {
		if event != "" && x.Event == event {
			continue
		}
		if x.Unit == g.e.Unit || flavour != "" && flavourOf(x.Package) == flavour {
			g.e.Earlier = append(g.e.Earlier, x)
		}
	}
}

func flavourOf(name string) string {
	flavour, _, _ := strings.Cut(name, "-")
	return flavour
}

// readEarlier reads what little is needed of a report.
func readEarlier(dir string) (Earlier, error) {
	path := filepath.Join(dir, reportName)
	b, err := readBounded(path, maxReportMB<<20)
	if err != nil {
		return Earlier{}, err
	}
	x, err := parseEarlier(b)
	if err != nil {
		return Earlier{}, fmt.Errorf("read %s: %w", path, err)
	}
	x.Folder = dir
	return x, nil
}

func parseEarlier(b []byte) (Earlier, error) {
	var r struct {
		Schema    int    `json:"schema"`
		Unit      string `json:"unit"`
		Event     string `json:"event"`
		Signature string `json:"signature"`
		Ending    *struct {
			At time.Time `json:"at"`
		} `json:"ending"`
		Evidence *struct {
			GatheredAt time.Time `json:"gathered_at"`
			Package    *struct {
				Name string `json:"name"`
			} `json:"package"`
		} `json:"evidence"`
	}
	err := json.Unmarshal(b, &r)
	if r.Schema > Schema { // which may have another form
		return Earlier{}, knownSchema(r.Schema)
	}
	if err != nil {
		return Earlier{}, err
	}
	if r.Schema < 1 || r.Unit == "" {
		return Earlier{}, errors.New("it is no report of an incident")
	}
	x := Earlier{Unit: r.Unit, Event: r.Event, Signature: r.Signature}
	if r.Evidence != nil {
		x.At = r.Evidence.GatheredAt
		if r.Evidence.Package != nil {
			x.Package = r.Evidence.Package.Name
		}
	}
	if r.Ending != nil {
		x.At = r.Ending.At
	}
	return x, nil
}

// readBounded reads a regular file of no more than so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, info, err := systemd.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("read %s: it has %d bytes, more than the %d that are read", path, info.Size(), most)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}
