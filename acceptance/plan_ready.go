package acceptance

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed plans/*.yaml
var readyPlans embed.FS

// ReadyPlans names the plans that come with the program.
func ReadyPlans() []string {
	files, err := fs.Glob(readyPlans, "plans/*.yaml")
	if err != nil {
		return nil
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(file, "plans/"), ".yaml")
	}
	return files
}

// ReadyPlan gives the file of a plan that comes with the program. The error
// wraps fs.ErrNotExist if there is none of the name.
func ReadyPlan(name string) ([]byte, error) {
	raw, err := readyPlans.ReadFile("plans/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no plan %q comes with this program, there are %s: %w", name, strings.Join(ReadyPlans(), ", "), fs.ErrNotExist)
	}
	return raw, nil
}

// OpenPlan is LoadPlan, also for the name of a plan that comes with the
// program, such as "default"; ./default is the file. Models of a ready plan that
// are not absolute lie in the working folder.
func OpenPlan(nameOrPath string) (*Plan, error) {
	if raw, err := ReadyPlan(nameOrPath); err == nil {
		return ParsePlan(raw)
	}
	p, err := LoadPlan(nameOrPath)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(nameOrPath, "/.") {
		return nil, fmt.Errorf("no file of that name, and no plan that comes with this program (%s): %w", strings.Join(ReadyPlans(), ", "), err)
	}
	return p, err
}

// ModelBytes is the size of the model's file, for an estimate; 0 if it is not
// there. env has the home folder, as KEY=value.
func (p *Plan) ModelBytes(env []string) int64 {
	path, err := p.modelPath(p.Model, env)
	if err != nil {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
