package incident

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// watchState is what a watch knows from one run to the next, by the names of its sources.
type watchState struct {
	Schema  int                    `json:"schema"`
	Sources map[string]sourceState `json:"sources"`

	written []byte
}

type sourceState struct {
	Begun   time.Time `json:"begun"`  // the first watch
	Cursor  string    `json:"cursor"` // of the journal: everything up to there has been dealt with; "": nothing since Begun
	Covered []covered `json:"reported"`

	Services map[string]known `json:"services"` // of ours, by their units
}

// readWatchState reads the state; a watch without one begins now.
func readWatchState(path string) (*watchState, error) {
	s := &watchState{Schema: 1, Sources: map[string]sourceState{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of the watch: %w", err)
	}
	if err := json.Unmarshal(raw, s); err != nil || s.Schema != 1 {
		return nil, fmt.Errorf("read the state of the watch: %s is damaged or of another version of this program (%w): move it away, and the watch begins now",
			path, errors.Join(err, fmt.Errorf("schema %d", s.Schema)))
	}
	if s.Sources == nil {
		s.Sources = map[string]sourceState{}
	}
	return s, nil
}

func (s *watchState) of(name string) sourceState { return s.Sources[name] }

func (s *watchState) put(name string, t *track) {
	services := map[string]known{}
	for unit, k := range t.services {
		services[unit] = k.durable(t.deaths[unit])
	}
	s.Sources[name] = sourceState{t.begun, t.done().cursor, t.covered, services}
}

// write writes the state, if it is another one than last time.
func (s *watchState) write(path string) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil || bytes.Equal(raw, s.written) {
		return err
	}
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(path, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	s.written = raw
	return nil
}

// FolderName is that of an incident's folder: when the unit ended, in UTC, and its name.
func FolderName(unit string, at time.Time) string {
	return at.UTC().Format("20060102T150405Z") + "-" + unit
}
