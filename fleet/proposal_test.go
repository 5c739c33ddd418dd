package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/systemd"
)

const someDigest = "sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func someProposal() Proposed {
	return Proposed{
		Unit: `llm@gpu\x2d0.service`, Scope: systemd.ScopeUser, Package: "hrx-3092596", Digest: someDigest,
		By: "an agent", At: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), Reason: "carries engine#123: \"decode-split\"\nsecond line",
	}
}

func TestProposalRoundTrip(t *testing.T) {
	want := someProposal()
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeProposal(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestDecodeProposal(t *testing.T) {
	p := someProposal()
	p.Reason, p.Unit = "", "llm.service"
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	edit := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, text := range map[string]string{
		"empty": "", "no object": "[]", "null": "null", "a text": `"x"`, "cut off": good[:len(good)/2], "cut off late": strings.TrimRight(good, "}\n"),
		"behind it": good + "{}", "noise behind": good + "x", "an unknown key": edit("{", `{"force": "yes",`), "twice": edit("{", `{"unit": "other.service",`),
		"another case": edit(`"unit"`, `"Unit"`), "a number": edit(`"llm.service"`, "7"), "an object": edit(`"llm.service"`, "{}"),
		"no unit": edit(`"unit": "llm.service",`, ""), "a path": edit("llm.service", "../llm.service"), "no suffix": edit("llm.service", "llm"),
		"a template": edit("llm.service", "llm@.service"), "no scope": edit(`"user"`, `""`), "another scope": edit(`"user"`, `"global"`),
		"a package elsewhere": edit("hrx-3092596", "../hrx"), "a package of options": edit("hrx-3092596", "--yes"), "a short digest": edit(someDigest, someDigest[:20]),
		"no digest": edit(someDigest, ""), "a bare digest": edit(someDigest, someDigest[7:]), "nobody's": edit("an agent", " "), "no time": edit("2026-11-30T09:00:00Z", "yesterday"),
		"bytes": "\xff" + good, "too long": edit("an agent", strings.Repeat("x", 300)), "huge": edit("an agent", strings.Repeat("x", maxFields)),
	} {
		if p, err := DecodeProposal([]byte(text)); !errors.Is(err, ErrProposal) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := DecodeProposal([]byte(edit("\n", "\n\n  "))); err != nil {
		t.Errorf("spaces: %v", err)
	}
}

// A name that anybody may have put where a proposal is expected is never waited for or followed.
func TestReadProposal(t *testing.T) {
	dir := t.TempDir()
	pipe, link, folder := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink("/etc/passwd", link), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link, folder} {
		if _, err := ReadProposal(path); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := ReadProposal(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

// What can be read means the same after it is written again.
func FuzzProposal(f *testing.F) {
	p := someProposal()
	data, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"unit":"a.service","scope":"system","package":"x","digest":"` + someDigest + `","by":"b","at":"2026-11-30T09:00:00+01:00"}`))
	f.Add([]byte(`{"unit":"a.service","unit":"b.service"}`))
	f.Add([]byte("{\"by\":\"\\ud800\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodeProposal(data)
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		q, err := DecodeProposal(again)
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		p.At = p.At.Truncate(time.Second)
		if diff := cmp.Diff(p, q); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}

func FuzzHold(f *testing.F) {
	for _, o := range []hold{{Reason: "x", By: "y", At: time.Unix(0, 0)}, {Reason: "a\nb", Until: time.Unix(1<<31, 0), By: "", At: time.Unix(1, 0)}} {
		data, err := o.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"reason":"x","at":"0001-01-01T00:00:00Z","until":"0001-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decodeHold(data)
		if err != nil {
			return
		}
		again, err := o.encode()
		if err != nil {
			t.Fatal(err)
		}
		p, err := decodeHold(again)
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		if p.Reason != o.Reason || !p.Until.Equal(o.Until.Truncate(time.Second)) || p.expired(o.At) != o.expired(o.At) && o.Until.Nanosecond() == 0 {
			t.Errorf("%+v, read back %+v", o, p)
		}
	})
}
