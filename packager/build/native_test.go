package build

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager"
)

func native3() []string { return []string{FormatDeb, FormatRPM, FormatArch} }

// oddTree is makeTree with what a packer could stumble over.
func oddTree(t *testing.T) string {
	t.Helper()
	tree := makeTree(t)
	at := func(name string) string { return filepath.Join(tree, "hrx", name) }
	for _, err := range []error{
		os.WriteFile(at("empty"), nil, 0o644),
		os.WriteFile(at("a b [c]*{d,e}?.txt"), []byte("odd\n"), 0o644),
		os.WriteFile(at("größe \\ 'q' \"p\".txt"), []byte("odd\n"), 0o600),
		os.WriteFile(at("-rf"), []byte("odd\n"), 0o644),
		os.MkdirAll(at(strings.Repeat("long/", 40)), 0o755),
		os.WriteFile(at(strings.Repeat("long/", 40)+strings.Repeat("n", 90)), []byte("far\n"), 0o644),
		os.Symlink("./empty", at("untidy link")),
		os.Symlink("llama/bin", at("link to folder")),
		os.Symlink(strings.Repeat("long/", 40)+strings.Repeat("n", 90), at("long link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func buildNatives(t *testing.T, tree string, formats ...string) *Result {
	t.Helper()
	o := options(t, tree, goodRecipe)
	o.Formats = formats
	return mustBuild(t, o)
}

// requireProgram skips where a program is missing.
func requireProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no %s: run internal/demo/setup.sh", name)
	}
}

// output runs a program and returns what it prints.
func programOutput(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.String())
	}
	return string(out)
}

// Each format, made twice, is the same to the byte: from another copy of the
// tree, with other times, umask, folder for temporary files, time zone,
// language, working folder and number of processors.
func TestNativeIsReproducible(t *testing.T) {
	first := buildNatives(t, oddTree(t), native3()...)
	tree := oddTree(t)
	for name, mode := range map[string]fs.FileMode{"1bit": 0o700, "hrx/empty": 0o600, "hrx": 0o2750} {
		if err := errors.Join(os.Chmod(filepath.Join(tree, name), mode), os.Chtimes(filepath.Join(tree, name), time.Unix(1, 0), time.Unix(2, 0))); err != nil {
			t.Fatal(err)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer syscall.Umask(syscall.Umask(0o077))
	elsewhere := t.TempDir()
	// A file of a link's name must not be taken for what the link is.
	if err := os.WriteFile(filepath.Join(elsewhere, "libx.so.1"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(elsewhere)
	for name, value := range map[string]string{"TMPDIR": elsewhere, "TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8", "SOURCE_DATE_EPOCH": "7", "NFPM_PASSPHRASE": "x"} {
		t.Setenv(name, value)
	}
	second := buildNatives(t, tree, native3()...)
	if len(first.Packages) != 3 || len(second.Packages) != 3 {
		t.Fatalf("%d and %d packages", len(first.Packages), len(second.Packages))
	}
	for i, p := range first.Packages {
		if q := second.Packages[i]; !bytes.Equal(read(t, p.Path), read(t, q.Path)) || p.SHA256 != q.SHA256 || p.Format != q.Format {
			t.Errorf("%s differs", p.Format)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(first.Path)); err != nil || len(entries) != 3 {
		t.Errorf("the output folder holds %v, %v", entries, err)
	}
}

// nativeEntry is an entry of a package as its manager will make it.
type nativeEntry struct{ Mode, Owner, Time, Target string }

// wantEntries is what our own installer leaves below the package's folder.
func wantEntries(m *packager.Manifest) map[string]nativeEntry {
	at := time.Unix(m.SourceDateEpoch, 0).UTC().Format("2006-01-02 15:04:05")
	out := map[string]nativeEntry{
		".":                   {"dr-xr-xr-x", "root/root", at, ""},
		packager.ManifestName: {"-r--r--r--", "root/root", at, ""},
	}
	for _, f := range m.Files {
		e := nativeEntry{"lrwxrwxrwx", "root/root", at, f.Target}
		switch f.Type {
		case packager.TypeDir:
			e.Mode = "dr-xr-xr-x"
		case packager.TypeFile:
			e.Mode = "-r--r--r--"
			if f.Mode&0o100 != 0 {
				e.Mode = "-r-xr-xr-x"
			}
		}
		out[f.Path] = e
	}
	return out
}

// Every manager finds the same entries, contents and digest in its package.
func TestNativeEntries(t *testing.T) {
	r := buildNatives(t, oddTree(t), append(native3(), FormatArchive)...)
	home := "/opt/1bit/" + r.Manifest.DirName()
	want := wantEntries(r.Manifest)
	got := map[string]map[string]nativeEntry{}
	listed := regexp.MustCompile(`^(\S{10}) +(?:\d+ +)?(\S+/\S+) +\S+ +(\S+ \S+) (.+?)(?: -> (.*))?$`)
	for format, list := range map[string]func(path string) string{
		FormatDeb: func(path string) string {
			requireProgram(t, "dpkg-deb")
			tar := filepath.Join(t.TempDir(), "data.tar")
			if err := os.WriteFile(tar, []byte(programOutput(t, "dpkg-deb", "--fsys-tarfile", path)), 0o644); err != nil {
				t.Fatal(err)
			}
			return programOutput(t, "tar", "--full-time", "--quoting-style=literal", "-tvf", tar)
		},
		FormatArch: func(path string) string {
			requireProgram(t, "zstd")
			return programOutput(t, "tar", "--zstd", "--full-time", "--quoting-style=literal", "-tvf", path)
		},
		FormatRPM: func(path string) string {
			requireProgram(t, "rpm")
			return programOutput(t, "rpm", "-qp", "--nosignature", "--qf", `[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILESIZES} @%{FILEMTIMES} %{FILENAMES}\t%{FILELINKTOS}\n]`, path)
		},
	} {
		got[format] = map[string]nativeEntry{}
		for line := range strings.Lines(list(packageOf(t, r, format).Path)) {
			line = strings.TrimSuffix(line, "\n")
			if format == FormatRPM {
				name, target, _ := strings.Cut(line, "\t")
				if line = name; target != "" {
					line += " -> " + target
				}
				part := strings.SplitN(line, "@", 2)
				seconds, rest, _ := strings.Cut(part[1], " ")
				n, err := strconv.ParseInt(seconds, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				line = part[0] + time.Unix(n, 0).UTC().Format("2006-01-02 15:04:05") + " " + rest
			}
			f := listed.FindStringSubmatch(line)
			if f == nil {
				t.Fatalf("%s: cannot read %q", format, line)
			}
			name := "/" + strings.TrimPrefix(strings.TrimPrefix(f[4], "./"), "/")
			if name = strings.TrimSuffix(name, "/"); name == home {
				name += "/."
			}
			rest, ok := strings.CutPrefix(name, home+"/")
			if !ok {
				continue
			}
			e := nativeEntry{f[1], f[2], f[3], f[5]}
			if e.Owner == "0/0" {
				e.Owner = "root/root"
			}
			if strings.HasPrefix(e.Mode, "l") {
				e.Mode = "lrwxrwxrwx" // whatever is stored, a link has no other
			}
			got[format][rest] = e
		}
		if diff := cmp.Diff(want, got[format]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

func packageOf(t *testing.T, r *Result, format string) Package {
	t.Helper()
	i := slices.IndexFunc(r.Packages, func(p Package) bool { return p.Format == format })
	if i < 0 {
		t.Fatalf("no %s among %v", format, r.Packages)
	}
	return r.Packages[i]
}

// The contents are the tree's, the digest is the archive's, whatever the
// format.
func TestNativeContents(t *testing.T) {
	requireProgram(t, "bsdtar")
	requireProgram(t, "dpkg-deb")
	tree := oddTree(t)
	r := buildNatives(t, tree, native3()...)
	for _, p := range r.Packages {
		dir := t.TempDir()
		switch p.Format {
		case FormatDeb:
			programOutput(t, "dpkg-deb", "-x", p.Path, dir)
		default:
			programOutput(t, "bsdtar", "-xf", p.Path, "-C", dir)
		}
		home := filepath.Join(dir, "opt/1bit", r.Manifest.DirName())
		m, err := packager.DecodeManifest(read(t, filepath.Join(home, packager.ManifestName)))
		if err != nil {
			t.Fatalf("%s: %v", p.Format, err)
		}
		if digest, err := m.Digest(); err != nil || digest != r.Digest {
			t.Errorf("%s: digest %s, %v", p.Format, digest, err)
		}
		for _, f := range m.Files {
			name := filepath.Join(home, f.Path)
			switch f.Type {
			case packager.TypeFile:
				if !bytes.Equal(read(t, name), read(t, filepath.Join(tree, f.Path))) {
					t.Errorf("%s: %s is not the tree's", p.Format, f.Path)
				}
			case packager.TypeLink:
				if target, err := os.Readlink(name); err != nil || target != f.Target {
					t.Errorf("%s: link %s to %q, %v, want %q", p.Format, f.Path, target, err, f.Target)
				}
			}
		}
		mark := filepath.Join(dir, "opt/1bit/.1bit-native", r.Manifest.DirName())
		if got := string(read(t, mark)); got != p.Format+"\n" {
			t.Errorf("%s: the mark says %q", p.Format, got)
		}
		if err := removeTree(dir); err != nil {
			t.Error(err)
		}
	}
}

// What the managers read of the packages themselves.
func TestNativeMetadata(t *testing.T) {
	requireProgram(t, "dpkg-deb")
	requireProgram(t, "rpm")
	requireProgram(t, "bsdtar")
	o := options(t, makeTree(t), goodRecipe)
	o.Version, o.Formats = "v2026.44-rc.2", native3()
	r := mustBuild(t, o)
	deb := packageOf(t, r, FormatDeb).Path
	for field, want := range map[string]string{
		"Package": "1bit-hrx-3092596", "Version": "2026.44~rc.2", "Architecture": "amd64", "Priority": "optional", "Section": "misc",
		"Maintainer": maintainer, "Depends": "libvulkan1",
	} {
		if got := strings.TrimSpace(programOutput(t, "dpkg-deb", "-f", deb, field)); got != want {
			t.Errorf("deb: %s is %q, want %q", field, got, want)
		}
	}
	if got := programOutput(t, "bsdtar", "-tf", deb); got != "debian-binary\ncontrol.tar.gz\ndata.tar.gz\n" {
		t.Errorf("deb: members %q", got)
	}
	query := func(format string) string {
		return programOutput(t, "rpm", "-qp", "--nosignature", "--qf", format, packageOf(t, r, FormatRPM).Path)
	}
	if got := query("%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{BUILDHOST} %{BUILDTIME} %{PAYLOADCOMPRESSOR}"); got != fmt.Sprintf("1bit-hrx-3092596 2026.44~rc.2 1 x86_64 localhost %d zstd", DefaultEpoch) {
		t.Errorf("rpm: %s", got)
	}
	arch := packageOf(t, r, FormatArch).Path
	info := programOutput(t, "bsdtar", "-xOf", arch, ".PKGINFO")
	for _, line := range []string{"pkgname = 1bit-hrx-3092596", "pkgver = 2026.44rc.2-1", "arch = x86_64", fmt.Sprintf("builddate = %d", DefaultEpoch)} {
		if !strings.Contains(info, line+"\n") {
			t.Errorf("arch: no %q in\n%s", line, info)
		}
	}
	mtree := programOutput(t, "sh", "-c", `bsdtar -xOf "$1" .MTREE | gzip -dc`, "sh", arch)
	for _, line := range []string{
		fmt.Sprintf("./opt/1bit/1bit-hrx-3092596/hrx/llama/bin/libx.so time=%d.0 mode=777 type=link link=libx.so.1\n", DefaultEpoch),
		fmt.Sprintf("./opt/1bit/1bit-hrx-3092596/1bit time=%d.0 mode=555 size=10 type=file", DefaultEpoch),
	} {
		if !strings.Contains(mtree, line) {
			t.Errorf("arch: no %q in\n%s", line, mtree)
		}
	}
	hook := programOutput(t, "bsdtar", "-xOf", arch, "usr/share/libalpm/hooks/1bit-hrx-3092596.hook")
	if !strings.Contains(hook, "When = PreTransaction\nExec = /usr/share/libalpm/scripts/1bit-hrx-3092596\nAbortOnFail\n") {
		t.Errorf("arch: hook %s", hook)
	}
	for _, name := range []string{"preinst", "prerm"} {
		if text := programOutput(t, "dpkg-deb", "--ctrl-tarfile", deb); !strings.Contains(text, "./"+name) {
			t.Errorf("deb: no %s", name)
		}
	}
}
