package linkage

import (
	"errors"
	"fmt"
	"io"
)

// ErrMalformed is wrapped by errors about a file that begins as an ELF file
// does and is none that a loader could take.
var ErrMalformed = errors.New("ELF file is damaged")

// cutOffError is for a file that ends before what is loaded of it does.
type cutOffError struct {
	size int64
	end  uint64
}

func (e *cutOffError) Error() string {
	return fmt.Sprintf("is cut off: it has %d bytes, and what is loaded of it ends at byte %d", e.size, e.end)
}

func (e *cutOffError) Unwrap() error { return ErrMalformed }

// GPU is the machine of code for AMD's graphics processors, which no loader
// of the host ever sees.
const GPU = "amdgpu"

// Object is what a loader must know of one ELF file. A file that holds nothing
// but GPU code is one too.
type Object struct {
	// Path is relative to the package's root.
	Path string
	// Machine is the processor, as the kernel names it: "x86_64", "aarch64", …
	// It is [GPU] for GPU code.
	Machine string
	// Program is true for what can be started: it names its loader, or needs
	// none.
	Program bool
	// Interp is the loader that a program asks for, such as
	// "/lib64/ld-linux-x86-64.so.2".
	Interp string
	// Soname is the name that others ask for a library by.
	Soname string
	// Needed are the names of the libraries it asks for, in order, with those
	// that it is a filter of. One with a slash is a path.
	Needed []string
	// Audit are the libraries that it wants the loader to be watched by.
	Audit []string
	// Script are the words of the first line of a script: the interpreter that
	// the kernel starts it by, and what that is told. A script has a Path, a
	// Script and nothing else.
	Script []string
	// Runpath and Rpath are the folders it wants libraries looked for in, in
	// its own spelling, split at the colons. An empty entry is the current
	// folder. An RPATH beside a RUNPATH is ignored, here as by the loader: a
	// RUNPATH that is not nil also ends the search in the RPATH of those that
	// loaded the object.
	Runpath, Rpath []string
	// Glibc is the least version of the C library it asks for, such as "2.38".
	Glibc string
	// GPUTargets are the processors that its GPU code is for, sorted.
	GPUTargets []string
	// Damage says what is wrong with a file that begins as ELF files do. Of
	// such a file nothing but Path is known. Only [Inspect] and [ReadFile] set it.
	Damage string
	// CutOff is true where the damage is that the end is not there: the loader
	// takes such a file, and the program dies of it.
	CutOff bool

	versions []version // what it asks of which library
	defined  []string  // the versions that it defines itself
}

// Wrong says what is wrong with a damaged file, behind its name; "" if nothing is.
func (o *Object) Wrong() string {
	switch {
	case o.CutOff:
		return o.Damage
	case o.Damage != "":
		return "is a damaged ELF file: " + o.Damage
	}
	return ""
}

// version is a symbol version that a library must define.
type version struct{ library, name string }

// Read looks at a file of size bytes. It returns nil and no error for what a
// loader has no business with: no ELF file, no GPU code and no script, or an
// object file that is still to be linked. An error wraps [ErrMalformed], or is r's own.
//
// It reads what it needs and no more, whatever the size: the headers, the
// dynamic section and the strings it names, and of GPU code the lists of what
// is inside.
func Read(r io.ReaderAt, size int64) (*Object, error) {
	f := &file{r: r, size: size}
	var magic [len(bundleMagic)]byte
	n, err := r.ReadAt(magic[:min(size, int64(len(magic)))], 0)
	if err != nil && (!errors.Is(err, io.EOF) || n == 0) {
		if errors.Is(err, io.EOF) {
			err = nil // empty
		}
		return nil, err
	}
	start := string(magic[:n])
	switch {
	case hasPrefix(start, "\x7fELF"):
		return readELF(f)
	case hasPrefix(start, bundleMagic), hasPrefix(start, compressedMagic):
		targets, err := bundleTargets(f, 0, size)
		if err != nil || len(targets) == 0 {
			return nil, err
		}
		return &Object{Machine: GPU, GPUTargets: targets}, nil
	}
	if hasPrefix(start, "#!") {
		return readScript(f)
	}
	return nil, nil
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }
