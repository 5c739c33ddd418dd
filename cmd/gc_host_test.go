package cmd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// Beside every user manager runs a process, (sd-pam), that the kernel hides from its own account. It keeps nobody
// from removing a package.
func TestRemoveBesideAHiddenProcess(t *testing.T) {
	tools := requireTools(t)
	host := testhost.Require(t)
	dir := filepath.Join(t.TempDir(), "onebit-gc")
	buildPackages(t, tools.program, "", dir, "f1f1f1f", "f2f2f2f")
	mustRun(t, "cp", tools.program, filepath.Join(dir, "1bit"))
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("restart: free\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inside, err := host.Bring(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := host.Run(context.Background(), host.User, "timeout", "240", "sh", "-euc", `cd "$1"; home=$(mktemp -d)
onebit() { ./1bit --config config.yaml --data-home "$home/data" --state-home "$home/state" "$@"; }
hidden=
for comm in /proc/[0-9]*/comm; do
    proc=${comm%/comm}
    if [ "$(cat "$comm" 2>/dev/null)" = "(sd-pam)" ] && grep -q "^Uid:.$(id -u)" "$proc/status" && ! readlink "$proc/exe"; then hidden=$proc; fi
done
[ -n "$hidden" ]
for archive in dist/*.zst; do onebit pkg install "$archive" >/dev/null; done
echo "gc: $(onebit pkg gc --keep 1 --keep-days 0 | tr '\n' ' ')"
echo "remove: $(onebit pkg remove hrx-f2f2f2f)"
echo "list: $(onebit pkg list)"`, "sh", inside)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gc: ", "hrx-f1f1f1f", "remove: removed hrx-f2f2f2f\n", "list: no package is installed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
