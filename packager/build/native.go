package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// checkFormats says before the work begins what would stop it. A release page
// makes one dot of several in a file's name.
func checkFormats(m *packager.Manifest, formats []string) error {
	if strings.Contains(m.DirName(), "..") {
		return fmt.Errorf("name %s has two dots in a row, of which a release page makes one in the names of files: choose another id or flavour: %w", m.DirName(), ErrRecipe)
	}
	for _, format := range formats {
		if format == FormatArchive {
			continue
		}
		if m.Tag == "" {
			return fmt.Errorf("format %s needs a version: give --version: %w", format, ErrRecipe)
		}
		if _, err := nativeVersion(m, format); err != nil {
			return fmt.Errorf("format %s: %w: %w", format, err, ErrRecipe)
		}
	}
	return nil
}

// checkNativeSize says what a format cannot hold.
func checkNativeSize(m *packager.Manifest, format string) error {
	limit := int64(math.MaxInt64)
	switch format {
	case FormatRPM:
		limit = 2_000_000_000 // its header holds the sum of sizes in 31 bits, with those of our own files
		if m.SourceDateEpoch > math.MaxUint32 {
			return fmt.Errorf("format rpm has no time after 2106, %d is one: %w", m.SourceDateEpoch, ErrFormat)
		}
	case FormatDeb:
		limit = 9_999_999_999 // ten digits in the header of an ar member
	}
	if m.Size() > limit {
		return fmt.Errorf("format %s holds at most %d bytes, %s has %d: leave the format out: %w", format, limit, m.Name(), m.Size(), ErrFormat)
	}
	return nil
}

// unpackedName is the folder of the unpacked package in the work folder.
const unpackedName = "unpacked"

// native makes the files of package managers.
type native struct {
	manifest *packager.Manifest
	digest   string
	tree     string // the package as it was unpacked
	work     string // an empty folder for scripts
	level    packager.Level
	runtime  []string // libraries of the C runtime that the host must have
}

// archivePath is where the archive goes: beside the other formats, or, when it
// is only what they are made of, into the work folder.
func (o *Options) archivePath(m *packager.Manifest, w *workFolder) string {
	if len(o.Formats) > 0 && !slices.Contains(o.Formats, FormatArchive) {
		return filepath.Join(w.dir, fileName(m, FormatArchive))
	}
	return filepath.Join(o.Out, fileName(m, FormatArchive))
}

// natives are the formats besides the archive.
func (o *Options) natives() []string {
	return slices.DeleteFunc(slices.Clone(o.Formats), func(f string) bool { return f == FormatArchive })
}

// archiveProgress counts the content once for the archive and once for each
// native format; nfpm does not tell how far it is with one.
func (o *Options) archiveProgress() func(done, total int64) {
	if o.Progress == nil {
		return nil
	}
	times := int64(1 + len(o.natives()))
	return func(done, total int64) { o.Progress(done, total*times) }
}

// writeFormats makes the native formats of what was unpacked from the archive
// and compared with the manifest. On an error it removes what this build wrote,
// the archive too.
func (o *Options) writeFormats(ctx context.Context, m *packager.Manifest, digest string, w *workFolder, archive *output) ([]Package, error) {
	written := map[string]Package{FormatArchive: {FormatArchive, archive.path, archive.size, archive.sha256, archive.alreadyThere, nil}}
	formats := o.Formats
	if len(formats) == 0 {
		formats = []string{FormatArchive}
	}
	err := o.writeNatives(ctx, &native{manifest: m, digest: digest, level: o.Level}, w, written)
	if err != nil {
		var errs []error
		for _, p := range written {
			if !p.AlreadyThere {
				errs = append(errs, os.Remove(p.Path))
			}
		}
		return nil, errors.Join(append([]error{err}, errs...)...)
	}
	var list []Package
	for _, format := range formats {
		list = append(list, written[format])
	}
	return list, nil
}

func (o *Options) writeNatives(ctx context.Context, n *native, w *workFolder, written map[string]Package) error {
	formats := o.natives()
	if len(formats) == 0 {
		return nil
	}
	for _, format := range formats {
		if err := checkNativeSize(n.manifest, format); err != nil {
			return err
		}
	}
	n.tree = filepath.Join(w.dir, unpackedName)
	var err error
	if n.work, err = w.sub("scripts"); err != nil {
		return err
	}
	if n.runtime, err = runtimeLibraries(ctx, n.tree, n.manifest); err != nil {
		return err
	}
	for i, format := range formats {
		out, err := writeOutput(ctx, filepath.Join(o.Out, fileName(n.manifest, format)), func(w io.Writer) error {
			return n.pack(ctx, format, w)
		}, func(io.Reader) error { return nil })
		if err != nil {
			return err
		}
		written[format] = Package{format, out.path, out.size, out.sha256, out.alreadyThere, n.undeclared(format)}
		if o.Progress != nil {
			size := n.manifest.Size()
			o.Progress(size*int64(i+2), size*int64(len(formats)+1))
		}
	}
	return nil
}

// runtimeLibraries are the libraries of the C runtime that the package wants
// of its host.
func runtimeLibraries(ctx context.Context, tree string, m *packager.Manifest) ([]string, error) {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	objects, err := linkage.Inspect(ctx, root, m)
	if err != nil {
		return nil, err
	}
	return linkage.Resolve(m, objects).Runtime, nil
}

// pack hands the package to nfpm. That knows no context and drops some errors
// of its writer, so both are kept here.
func (n *native) pack(ctx context.Context, format string, w io.Writer) error {
	packer, err := packer(format)
	if err != nil {
		return err
	}
	info, err := n.info(format)
	if err != nil {
		return err
	}
	watched := &watchedWriter{ctx: ctx, w: w}
	err = packer.Package(info, watched)
	if watched.err != nil {
		err = watched.err
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("make %s package of %s: %w", format, n.manifest.Name(), err)
	}
	return nil
}

// watchedWriter ends with its context and remembers its first error.
type watchedWriter struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (w *watchedWriter) Write(p []byte) (n int, err error) {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return 0, w.err
	}
	n, w.err = w.w.Write(p)
	return n, w.err
}
