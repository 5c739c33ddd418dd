package cmd_test

import (
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/1bit-systems/pkg/internal/testelf"
)

// elf FILE [needed=NAME|runpath=DIR|interp=LOADER]… writes an ELF file.
func elf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: elf file [key=value…]")
	}
	var f testelf.File
	for _, arg := range args[1:] {
		switch key, value, _ := strings.Cut(arg, "="); key {
		case "needed":
			f.Needed = append(f.Needed, value)
		case "runpath":
			f.Runpath = append(f.Runpath, value)
		case "interp":
			f.Interp = value
		default:
			ts.Fatalf("elf: unknown key %q", key)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), f.Bytes(), 0o755))
}
