package pkg_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/1bit-systems/pkg"

// Who may import whom, by folder; "internal" stands for the small packages below it that are part of the
// product. Imports point downwards only. A folder that is not here may not exist.
var mayImport = map[string][]string{
	"cmd/1bit":             {"cmd"},
	"cmd":                  {"fleet", "fleet/doctor", "fleet/incident", "engine/claim", "engine/gpu", "acceptance", "acceptance/report", "channels", "packager", "packager/build", "packager/store", "packager/version", "packager/linkage", "engine/source", "systemd", "engine", "internal"},
	"fleet/doctor":         {"fleet", "engine", "engine/gpu", "engine/claim", "systemd", "packager", "packager/store", "packager/version", "packager/linkage", "internal"},
	"fleet/incident":       {"fleet", "acceptance", "engine", "engine/gpu", "engine/claim", "systemd", "packager", "packager/store", "packager/version", "internal"},
	"fleet":                {"engine", "systemd", "packager", "packager/store", "packager/version", "packager/linkage", "channels", "internal"},
	"acceptance":           {"acceptance/detect", "acceptance/neighbour", "acceptance/stats", "acceptance/answers", "acceptance/load", "engine", "engine/gpu", "packager", "packager/store", "systemd", "internal"},
	"acceptance/report":    {"acceptance", "internal"},
	"acceptance/answers":   {"internal"},
	"acceptance/load":      {},
	"acceptance/neighbour": {"engine", "engine/gpu", "internal"},
	"acceptance/stats":     {},
	"acceptance/detect":    {"acceptance/stats", "engine", "engine/gpu", "internal"},
	"channels":             {"engine", "packager", "internal"},
	"packager":             {"packager/version", "engine", "internal"},
	"packager/version":     {"internal"},
	"packager/linkage":     {"packager", "internal"},
	"engine/source":        {"internal"},
	"packager/build":       {"packager", "packager/version", "packager/linkage", "engine", "engine/source", "internal"},
	"packager/store":       {"packager", "packager/version", "packager/linkage", "engine", "engine/source", "internal"},
	"systemd":              {"internal"},
	"engine":               {"internal"},
	"engine/gpu":           {"internal"},
	"engine/claim":         {"engine", "engine/gpu", "internal"},
	"internal/atomicfile":  {},
	"internal/lazyregexp":  {},
	"internal/procfs":      {},
	"internal/secret":      {"internal"},
	"internal/ui":          {},
}

// Parts that only tests, the demo and the benchmarks use. The product may not import them.
var forTests = []string{"internal/demo", "internal/testelf", "internal/testhost", "internal/realengine", "internal/fakeengine", "internal/faultrun", "internal/bench"}

// Packages of others that belong to one folder alone.
var onlyIn = map[string]string{
	"github.com/goreleaser/nfpm/v2":     "packager/build",
	"github.com/nats-io/nats-server/v2": "fleet/hub",
	"github.com/spf13/viper":            "cmd",
	"github.com/spf13/cobra":            "cmd",
}

func TestImportsPointDownwards(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		folder := path.Dir(filepath.ToSlash(file))
		test := strings.HasSuffix(file, "_test.go")
		if !test {
			seen[folder] = true
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			checkImport(t, file, folder, strings.Trim(spec.Path.Value, `"`), test)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range mayImport {
		if !seen[folder] && folder != "channels" {
			t.Errorf("the table names %s, which holds no code", folder)
		}
	}
}

func checkImport(t *testing.T, file, folder, imported string, test bool) {
	t.Helper()
	for pkg, owner := range onlyIn {
		if (imported == pkg || strings.HasPrefix(imported, pkg+"/")) && folder != owner {
			t.Errorf("%s imports %s, which belongs to %s alone", file, imported, owner)
		}
	}
	ours, ok := strings.CutPrefix(imported, module+"/")
	if !ok || isForTests(folder) {
		return
	}
	if isForTests(ours) {
		if !test {
			t.Errorf("%s imports %s, which is for tests", file, ours)
		}
		return
	}
	allowed, known := mayImport[folder]
	if !known && folder != "." {
		t.Errorf("%s lies in a folder that the import table does not know", file)
		return
	}
	if test {
		return // a test may set the scene with any part of the product
	}
	if strings.HasPrefix(ours, "internal/") && slices.Contains(allowed, "internal") {
		ours = "internal"
	}
	if !slices.Contains(allowed, ours) {
		t.Errorf("%s imports %s: the import table allows %v", file, ours, allowed)
	}
}

func isForTests(folder string) bool {
	return slices.ContainsFunc(forTests, func(p string) bool { return folder == p || strings.HasPrefix(folder, p+"/") })
}
