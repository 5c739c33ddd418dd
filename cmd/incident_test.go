package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	zone := time.FixedZone("ADT", -3*3600)
	now := time.Date(2026, 10, 23, 8, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"": "", "2h": "2026-10-23T09:00:00Z", "90m": "2026-10-23T09:30:00Z",
		"2026-10-23T10:40:00Z": "2026-10-23T10:40:00Z", "2026-10-23 07:40": "2026-10-23T10:40:00Z", "2026-10-23 07:40:05": "2026-10-23T10:40:05Z",
		"07:40": "2026-10-23T10:40:00Z", "07:40:05": "2026-10-23T10:40:05Z", "2026-10-22": "2026-10-22T03:00:00Z",
		"soon": "refused", "-2h": "refused", "2026-10-24": "refused", "09:00": "refused",
	} {
		at, err := parseSince(text, now)
		got := at.UTC().Format(time.RFC3339)
		switch {
		case err != nil:
			got = "refused"
		case at.IsZero():
			got = ""
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
}

// A plan that somebody has changed stays.
func TestKeepPlan(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, text := range []string{"a", "a", "b", "b", "a"} {
		path, err := keepPlan(dir, "p", []byte(text))
		if got, _ := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte(text)) {
			t.Fatalf("%s: %v: %q", path, err, got)
		}
		paths = append(paths, filepath.Base(path))
	}
	if paths[1] != "p.yaml" || paths[3] != "p-2.yaml" || paths[4] != "p.yaml" {
		t.Error(paths)
	}
}

// Nobody types in the report: the first Ctrl-C ends it.
func TestReadIncidentEnds(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&app{stdin: in}).readIncident(ctx, "-"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Root's watch, as it is installed, sees the user managers too, unless a scope was named.
func TestWatchArgs(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	a.config.Scope = "system"
	for _, named := range []string{"", "system"} {
		a.flags.scope = named
		args, err := a.watchArgs("1bit")
		if err != nil || slices.Contains(args, "--scope") != (named != "") {
			t.Errorf("scope %q: %q, %v", named, args, err)
		}
	}
}
