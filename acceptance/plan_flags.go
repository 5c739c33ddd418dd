package acceptance

import (
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

// serverFlags are the flags that the runner sets itself, and those that would
// take the load off the path users are on or the log away.
var serverFlags = []string{
	"-m", "--model", "-mu", "--model-url", "-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-dr", "--docker-repo",
	"--host", "--port", "--reuse-port", "--api-key", "--api-key-file", "--api-prefix", "--ssl-key-file", "--ssl-cert-file",
	"-c", "--ctx-size", "-np", "--parallel", "-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified",
	"-sps", "--slot-prompt-similarity", "--no-slots", "--embedding", "--embeddings", "--rerank", "--reranking",
	"--log-disable", "--log-file", "--log-colors",
}

// neighbourFlags are those of a neighbour's program, by its kind.
var neighbourFlags = map[string][]string{
	neighbour.Bench:  {"-m", "--model", "-o", "--output", "-oe", "--output-err", "-hf", "--hf-repo"},
	neighbour.Server: {"-m", "--model", "-mu", "--model-url", "-hf", "--hf-repo", "--host", "--port", "--api-key", "--api-key-file", "--api-prefix", "--log-disable", "--log-file"},
	neighbour.Ops:    {"test", "perf", "grad", "support"},
}

// OwnFlag tells whether an option of llama-server is one that no plan may give.
func OwnFlag(option string) bool { return ownFlag(serverFlags, []string{option}) != "" }

// ownFlag finds one of ours among a plan's flags.
func ownFlag(own, flags []string) string {
	for _, f := range flags {
		if name, _, _ := strings.Cut(f, "="); slices.Contains(own, name) {
			return name
		}
	}
	return ""
}
