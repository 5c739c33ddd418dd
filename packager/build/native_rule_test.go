package build

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager"
)

func TestParseFormats(t *testing.T) {
	got, err := ParseFormats("rpm, tar.zst,deb,archlinux")
	if diff := cmp.Diff([]string{"rpm", "tar.zst", "deb", "archlinux"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, list := range []string{"", "apk", "deb,", "deb,rpm,deb", "DEB"} {
		if got, err := ParseFormats(list); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", list, got, err)
		} else if list == "apk" && !strings.Contains(err.Error(), "tar.zst, deb, rpm, archlinux") {
			t.Errorf("%q: %v does not list them", list, err)
		}
	}
}

// A release page puts a dot for everything but these characters, and one that
// begins with a dot is renamed as well; several dots become one.
func TestFileNamesSurviveUpload(t *testing.T) {
	safe := regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)
	for _, id := range []string{"3092596", "0", "v2026.44", "a-.-b", strings.Repeat("z", 64)} {
		if err := packager.CheckWord(id); err != nil {
			t.Fatal(err)
		}
		for _, machine := range []string{"", "x86_64", "aarch64", "riscv64"} {
			for _, tag := range []string{"v2026.44", "v2026.44-rc.1", "v2026.44+rocm7", "v2026.40-5-gfeedbee-dirty", "b6123"} {
				m := &packager.Manifest{Flavour: "hrx", ID: id, Tag: tag, Machine: machine}
				for _, format := range Formats() {
					name := fileName(m, format)
					if !safe.MatchString(name) || strings.Contains(name, "..") || !strings.HasPrefix(name, "1bit-hrx-"+id+"-linux-") {
						t.Errorf("%s", name)
					}
				}
			}
		}
	}
	for _, bad := range []string{"a~b", "a+b", "a b", "a:b", "A", "ü", "-a", ".a", "a."} {
		if packager.CheckWord(bad) == nil {
			t.Errorf("%q may be an id", bad)
		}
	}
}

func TestNativeNeeds(t *testing.T) {
	n := &native{
		manifest: &packager.Manifest{
			Machine: "x86_64", Glibc: "2.38",
			HostLibraries: []packager.HostLibrary{
				{Name: "libamdhip64.so.7", NeededBy: "a", Dirs: []string{"/opt/rocm-therock/lib"}},
				{Name: "libgomp.so.1", NeededBy: "a"}, {Name: "libnobody.so.3", NeededBy: "a"}, {Name: "libvulkan.so.1", NeededBy: "b"},
			},
			Requires: []packager.Requirement{
				{Kind: packager.RequirePath, Name: "/opt/rocm-therock"}, {Kind: packager.RequireLibrary, Name: "libvulkan.so.1"},
				{Kind: packager.RequireLibrary, Name: "libnuma.so.1"}, {Kind: packager.RequireLibrary, Name: "libamdhip64.so.7"},
			},
		},
		runtime: []string{"libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"},
	}
	for format, want := range map[string][]string{
		FormatDeb: {"libc6 (>= 2.38)", "libgcc-s1", "libgomp1", "libnuma1", "libstdc++6", "libvulkan1"},
		FormatRPM: {
			"libc.so.6(GLIBC_2.38)(64bit)", "libgcc_s.so.1()(64bit)", "libgomp.so.1()(64bit)", "libnobody.so.3()(64bit)", "libnuma.so.1()(64bit)",
			"libstdc++.so.6()(64bit)", "libvulkan.so.1()(64bit)", "rpmlib(PayloadIsZstd) <= 5.4.18-1", "/bin/sh", "coreutils", "grep", "sed",
		},
		FormatArch: {"glibc>=2.38", "gcc-libs", "numactl", "vulkan-icd-loader"},
	} {
		if diff := cmp.Diff(want, n.depends(format)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	n.manifest.Requires = append(n.manifest.Requires, packager.Requirement{Kind: packager.RequireKernelParameter, Name: "amdgpu.x", Value: "0"})
	for format, want := range map[string][]string{
		FormatDeb:  {"path /opt/rocm-therock", "kernel_parameter amdgpu.x=0", "library libnobody.so.3"},
		FormatArch: {"path /opt/rocm-therock", "kernel_parameter amdgpu.x=0", "library libnobody.so.3"},
		FormatRPM:  {"path /opt/rocm-therock", "kernel_parameter amdgpu.x=0"},
	} {
		if diff := cmp.Diff(want, n.undeclared(format)); diff != "" {
			t.Errorf("%s, undeclared (-want +got):\n%s", format, diff)
		}
	}
}

func TestNativeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Options, tree string) error
		want   error
		text   string
	}{
		"two dots in a row": {func(o *Options, _ string) error { o.ID = "a..b"; return nil }, ErrRecipe, "choose another id"},
		"no version":        {func(o *Options, _ string) error { o.Version = ""; return nil }, ErrRecipe, "give --version"},
		"untidy link to a folder": {func(_ *Options, tree string) error {
			return os.Symlink("./llama", filepath.Join(tree, "hrx/x"))
		}, ErrFormat, `spell the target "llama"`},
		"another file of that name": {func(o *Options, _ string) error {
			return errors.Join(os.MkdirAll(o.Out, 0o755), os.WriteFile(filepath.Join(o.Out, "1bit-hrx-3092596-linux-x86_64.rpm"), nil, 0o644))
		}, ErrDifferent, "with --id"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := makeTree(t)
			o := options(t, tree, goodRecipe)
			o.Formats = []string{FormatArchive, FormatDeb, FormatRPM}
			if err := c.change(&o, tree); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadDir(o.Out)
			_, err := Build(context.Background(), o)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadDir(o.Out); len(after) != len(before) {
				t.Errorf("the output folder holds %v, before %v", after, before)
			}
		})
	}
	big := &packager.Manifest{Flavour: "hrx", ID: "a", Files: []packager.File{{Path: "a", Type: packager.TypeFile, Size: math.MaxInt32 + 1}}}
	if err := checkNativeSize(big, FormatRPM); !errors.Is(err, ErrFormat) {
		t.Errorf("2 GiB in an rpm: %v", err)
	}
	if err := errors.Join(checkNativeSize(big, FormatDeb), checkNativeSize(big, FormatArch)); err != nil {
		t.Error(err)
	}
}

// nfpm drops errors of its writer when it ends an Arch package: a full disk
// must not leave a package that is cut.
func TestNativeWriterFails(t *testing.T) {
	for _, format := range native3() {
		n := &native{manifest: &packager.Manifest{Flavour: "hrx", ID: "a", Tag: "v1.2", SourceDateEpoch: DefaultEpoch}, tree: t.TempDir(), work: t.TempDir()}
		if err := os.WriteFile(filepath.Join(n.tree, packager.ManifestName), []byte("{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		full := &counter{}
		if err := n.pack(context.Background(), format, full); err != nil {
			t.Fatal(err)
		}
		full2 := errors.New("disk is full")
		for _, room := range []int64{0, full.n / 2, full.n - 1} {
			err := n.pack(context.Background(), format, &fullWriter{room, full2})
			if !errors.Is(err, full2) {
				t.Errorf("%s with room for %d of %d bytes: %v", format, room, full.n, err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := n.pack(ctx, format, io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

type fullWriter struct {
	room int64
	err  error
}

func (w *fullWriter) Write(p []byte) (int, error) {
	if w.room -= int64(len(p)); w.room < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// The guard finds the package's name in a unit as a word, in every spelling.
func TestMentionPattern(t *testing.T) {
	pattern := mentionPattern("1bit-hrx-v2026.4")
	for text, want := range map[string]bool{
		"Environment=A=/opt/1bit/1bit-hrx-v2026.4/hrx/llama-server":      true,
		"ExecStart=\"/opt/1bit/1bit-hrx-v2026.4\"":                       true,
		"# uses 1bit-hrx-v2026.4.":                                       true,
		"1bit-hrx-v2026.4":                                               true,
		`ConditionPathExists=/opt/1bit/1bit\x2dhrx\x2dv2026.4/1bit`:      true,
		"Environment=A=/opt/1bit/1bit-hrx-v2026.44/hrx/llama-server":     false,
		"Environment=A=/opt/1bit/1bit-hrx-v2026.4-old/hrx/llama-server":  false,
		"Environment=A=/opt/1bit/1bit-hrx-v2026.4.1/hrx/llama-server":    false,
		"Environment=A=/opt/1bit/1bit-hrx-v2026x4/hrx/llama-server":      false,
		"Environment=A=/opt/1bit/old-1bit-hrx-v2026.4/hrx/llama-server ": false,
		"": false,
	} {
		cmd := exec.Command("grep", "-q", "-E", "-e", pattern)
		cmd.Stdin = strings.NewReader(text + "\n")
		if got := cmd.Run() == nil; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Whatever the script is put together of, a shell takes it.
func TestScriptsAreShell(t *testing.T) {
	n := &native{manifest: &packager.Manifest{Flavour: "hrx", ID: "v2026.4"}, digest: "sha256:" + strings.Repeat("0", 64)}
	for _, call := range []string{debPreInstall, debPreRemove, rpmPreInstall, rpmPreRemove, archPreTransaction} {
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(n.script(call))
		if out, err := cmd.CombinedOutput(); err != nil || regexp.MustCompile(`@[A-Z]+@`).MatchString(n.script(call)) {
			t.Errorf("%s: %v %s", call, err, out)
		}
	}
}
