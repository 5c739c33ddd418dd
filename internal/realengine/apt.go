package realengine

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed keyrings/debian-archive-keyring.gpg
var debianKeyring []byte

// packages are the binary packages that hold the engine's programs; apt adds what they need.
func packages() []string {
	return []string{"llama.cpp-tools", "llama.cpp-tools-extra", "llama.cpp-tests", "libggml0"}
}

// apt runs apt with every file of its own below dir.
type apt struct {
	dir string
}

// newAPT lays out dir for one suite of an archive.
func newAPT(ctx context.Context, root fs.FS, dir string, from archive, suite string) (*apt, error) {
	a := &apt{dir: dir}
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "keys", "none", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	line := fmt.Sprintf("deb %s %s %s\n", from.uri, suite, strings.Join(from.components, " "))
	files := map[string][]byte{"sources.list": []byte(line), "status": nil, "apt.conf": a.config(ctx)}
	if from.debian {
		files["keys/debian-archive-brought.gpg"] = debianKeyring
	}
	for _, name := range from.keyrings {
		if keys, err := fs.ReadFile(root, "usr/share/keyrings/"+name); err == nil {
			files["keys/"+strings.TrimSuffix(name, filepath.Ext(name))+".gpg"] = keys
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// config is the whole configuration: folders of our own, and of the machine's only how it reaches the network.
func (a *apt) config(ctx context.Context) []byte {
	var b bytes.Buffer
	folder := func(key, value string) { fmt.Fprintf(&b, "%s %q;\n", key, filepath.Join(a.dir, value)) }
	if out, err := exec.CommandContext(ctx, "apt-config", "dump").Output(); err == nil {
		for line := range strings.Lines(string(out)) {
			for _, prefix := range []string{"Acquire::http", "Acquire::https", "Acquire::ForceIPv"} {
				if strings.HasPrefix(line, prefix) {
					b.WriteString(line)
					break
				}
			}
		}
	}
	arch := runtime.GOARCH // Debian's names of amd64 and arm64 are Go's
	fmt.Fprintf(&b, "APT::Architecture %q;\nAPT::Architectures { %q; };\n", arch, arch)
	b.WriteString(`APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Get::Assume-Yes "true";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::Retries::Delay "false";
Acquire::Check-Valid-Until "false";
Acquire::Check-Date "false";
Debug::NoLocking "true";
Dir::Etc::main "/dev/null";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
Dir::Etc::preferences "/dev/null";
`)
	folder("Dir::State", "")
	folder("Dir::State::lists", "lists")
	folder("Dir::State::status", "status")
	folder("Dir::State::extended_states", "extended_states")
	folder("Dir::Cache", "cache")
	folder("Dir::Log", "none")
	folder("Dir::Etc::parts", "none")
	folder("Dir::Etc::sourcelist", "sources.list")
	folder("Dir::Etc::sourceparts", "none")
	folder("Dir::Etc::trusted", "none/trusted.gpg")
	folder("Dir::Etc::trustedparts", "keys")
	folder("Dir::Etc::preferencesparts", "none")
	return b.Bytes()
}

// update fetches and checks the suite's package lists.
func (a *apt) update(ctx context.Context) error {
	_, err := a.run(ctx, "apt-get", "-o", "APT::Update::Error-Mode=any", "update")
	return err
}

// download fetches the packages and all that they need, as if nothing were installed.
func (a *apt) download(ctx context.Context) error {
	_, err := a.run(ctx, "apt-get", append([]string{"--download-only", "install"}, packages()...)...)
	return err
}

// unpack unpacks what was downloaded into one folder and returns it, with the version of llama.cpp.
func (a *apt) unpack(ctx context.Context) (root, version string, err error) {
	debs, err := filepath.Glob(filepath.Join(a.dir, "cache/archives/*.deb"))
	if err != nil {
		return "", "", err
	}
	slices.Sort(debs)
	root = filepath.Join(a.dir, "root")
	for _, deb := range debs {
		if _, err := a.run(ctx, "dpkg-deb", "--extract", deb, root); err != nil {
			return "", "", err
		}
		if strings.HasPrefix(filepath.Base(deb), packages()[0]+"_") {
			out, err := a.run(ctx, "dpkg-deb", "--field", deb, "Version")
			if err != nil {
				return "", "", err
			}
			version = strings.TrimSpace(out)
		}
	}
	if version == "" {
		return "", "", fmt.Errorf("unpack packages: %s is not among the %d that apt fetched", packages()[0], len(debs))
	}
	return root, version, nil
}

func (a *apt) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"), "LC_ALL=C",
		"DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if reason := complaints(stderr.String()); reason != "" {
			err = errors.New(reason)
		}
		return "", fmt.Errorf("%s %s: %w", name, args[len(args)-1], err)
	}
	return stdout.String(), nil
}

// complaints returns the error lines of apt's stderr in one, or its last line if none is marked.
func complaints(stderr string) string {
	var lines []string
	last := ""
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		last = line
		if text, found := strings.CutPrefix(line, "E: "); found && len(lines) < 3 {
			lines = append(lines, text)
		}
	}
	if len(lines) == 0 {
		return last
	}
	return strings.Join(lines, "; ")
}
