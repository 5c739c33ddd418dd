package ui_test

import (
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/ui"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1048575: "1.0 MiB", 66060288: "63.0 MiB", 1 << 62: "4.0 EiB",
	} {
		if got := ui.Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCleanEscapesWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		"plain é \"quoted\"": "plain é \"quoted\"",
		"\x1b[31mred\n":      `\x1b[31mred\n`,
		"bad \xff":           `bad \xff`,
		"tab\t\"q\"":         `tab\t"q"`,
	} {
		if got := ui.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := ui.Table(&b, [][]string{{"NAME", "STATE"}, {"hrx-1", "ok"}, {"a-longer-name", "\x1b[2J"}}); err != nil {
		t.Fatal(err)
	}
	want := "NAME           STATE\nhrx-1          ok\na-longer-name  \\x1b[2J\n"
	if b.String() != want {
		t.Errorf("got\n%q, want\n%q", b.String(), want)
	}
}

func TestNoProgressOffTerminal(t *testing.T) {
	var b strings.Builder
	p := ui.NewProgress(&b, "install")
	p.Bytes(1, 2)
	p.Close()
	if b.Len() != 0 {
		t.Errorf("wrote %q", b.String())
	}
}
