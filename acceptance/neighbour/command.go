package neighbour

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/1bit-systems/pkg/engine"
)

// commandJob is a run of any program.
type commandJob struct {
	options  engine.ProcessOptions
	proves   *regexp.Regexp // nil: a run that ends well is one unit
	out, log *tail
	lines    int64
}

// checkCommand finds the program and reads what proves its work.
func (o *Options) checkCommand() (unit string, err error) {
	if len(o.Args) == 0 {
		return "", errors.New("kind command needs a command line in args")
	}
	if _, err := o.lookUp(o.Args[0]); err != nil {
		return "", err
	}
	if o.Proof == "" {
		return "runs", nil
	}
	if _, err := regexp.Compile(o.Proof); err != nil {
		return "", fmt.Errorf("proof: %w", err)
	}
	return "lines", nil
}

// lookUp finds a program as the neighbour's own environment would.
func (o *Options) lookUp(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, runnable(name)
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, v := range o.Env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in %s", name, path)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is no program", path)
	}
	return nil
}

func beginCommand(_ context.Context, o *Options, _ int) (job, error) {
	program, err := o.lookUp(o.Args[0])
	if err != nil {
		return nil, err
	}
	j := &commandJob{options: engine.ProcessOptions{
		Program: program, Args: o.Args[1:], Env: o.Env, LogPath: o.file(FileLog), StdoutPath: o.file(FileOut),
	}}
	if o.Proof != "" {
		if j.proves, err = regexp.Compile(o.Proof); err != nil {
			return nil, fmt.Errorf("proof: %w", err)
		}
	}
	j.out, j.log = newTail(j.options.StdoutPath), newTail(j.options.LogPath)
	return j, nil
}

func (j *commandJob) process() engine.ProcessOptions { return j.options }

func (j *commandJob) beside(context.Context, *engine.Process) {}

func (j *commandJob) proof() (int64, bool) {
	if j.proves == nil {
		return j.lines, true
	}
	j.out.lines(j.line)
	j.log.lines(j.line)
	return j.lines, true
}

func (j *commandJob) line(line string) {
	if j.proves.MatchString(line) {
		j.lines++
	}
}

func (j *commandJob) verdict(exit string) (string, []string) {
	if j.proves != nil {
		j.out.finish(j.line)
		j.log.finish(j.line)
	} else if exit == ExitOK {
		j.lines = 1
	}
	switch {
	case exit == ExitOK && j.proves != nil && j.lines == 0:
		return exit, []string{"no line of its output is as the plan's proof says"}
	case exit != ExitOK && exit != ExitStopped:
		return exit, []string{"the command ended: " + exit}
	}
	return exit, nil
}
