package cmd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// A detached soak runs as a unit of its own, keeps what it starts in scopes, goes on after a kill, is followed by its
// folder, and leaves
// neither unit nor process behind.
func TestDetachedSoak(t *testing.T) {
	tools := requireTools(t)
	host := testhost.Require(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "onebit-soak")
	files := map[string]string{
		"tree/1bit":         "#!/bin/sh\nexit 0\n",
		"tree/llama-server": "#!/bin/sh\nexec \"$(dirname \"$0\")/fake-llama-server\" \"$@\"\n",
		"recipe.yaml": "flavour: hrx\ninclude: [.]\nentry_points: {1bit: 1bit, llama-server: llama-server}\n" +
			"components: {engine: {commit: 7871c717871c71}}\n",
		"tiny.gguf":   "model\n",
		"config.yaml": "restart: free\n",
		"plan.yaml": "name: detached\nmodel: tiny.gguf\nserver: {env: {FAKE_ENGINE_TOKEN: 2ms}}\n" +
			"load: {duration: 3s, prompt_tokens: [24, 100], n_predict: [20]}\ngates: {all_slots_busy_share: 0.1}\np0: 0.2\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "cp", tools.program, filepath.Join(dir, "1bit"))
	mustRun(t, "cp", self, filepath.Join(dir, "tree/fake-llama-server"))
	inside, err := host.Bring(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := host.Run(context.Background(), host.User, "timeout", "400", "sh", "-euc", `home=$(mktemp -d); cd "$home"; cp -r "$1"/. .
onebit() { ./1bit --config config.yaml --data-home "$home/data" --state-home "$home/state" "$@"; }
onebit pkg build --recipe recipe.yaml --tree tree --out dist --id 7871c71 --version v1.0.0 --no-run --level fast >/dev/null
onebit pkg install dist/*.zst >/dev/null
onebit accept run plan.yaml --package 7871c71 --evidence evidence --detach
unit=1bit-accept-evidence.service
until [ -d evidence/arms/0001 ] && systemctl --user list-units --type=scope --no-legend --plain | grep -q 1bit; do systemctl --user is-active -q $unit; sleep 0.1; done
echo "unit: $(systemctl --user is-active $unit)"
systemctl --user kill -s KILL $unit
while systemctl --user is-active -q $unit; do sleep 0.1; done
echo "killed: $(onebit accept verdict evidence 2>&1 >/dev/null || true)"
onebit accept resume evidence --detach
onebit accept watch evidence --every 200ms
units() { systemctl --user list-units --all --no-legend --plain '1bit-accept-*' | wc -l; }
processes() { grep -l "$home/dat[a]" /proc/[0-9]*/cmdline 2>/dev/null | wc -l; }
for i in $(seq 600); do [ "$(units) $(processes)" = "0 0" ] && break; sleep 0.1; done
echo "after: $(units) units, $(processes) processes"`, "sh", inside)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"runs as 1bit-accept-evidence.service", "/evidence\n", "unit: active", "killed: hint: 1bit accept resume evidence goes on with it", "verdict: pass: ", "after: 0 units, 0 processes",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
