package incident

import (
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

const (
	maxFrames = 64
	maxSymbol = 4096 // bytes of a symbol that is read
)

// The shapes of a frame: gdb's and systemd-coredump's, then glibc's backtrace_symbols.
var (
	reFrame  = lazyregexp.New(`^\s*#(\d{1,4})\s+(?:0x[0-9a-fA-F]+\s+)?(?:in\s+)?(\S.*)$`)
	reSymbol = lazyregexp.New(`^(?:\[bt\]\s*)?\S*\(([^()+]*)(?:\+0x[0-9a-fA-F]+)?\)\s?\[0x[0-9a-fA-F]+\]\s*$`)
	reThread = lazyregexp.New(`^Stack trace of thread \d+:`)
	reColour = lazyregexp.New("\x1b\\[[0-9;]*m")
	reLambda = lazyregexp.New(`(?:::)?(?:\{lambda(?:#\d+)?\}|'lambda\d*'|\$_\d+|<lambda>)(?:::operator\(\))?`)
	reName   = lazyregexp.New(`^[\w:~$ .{}'-]+(?:\boperator[-+*/%^&|~!=<>,\[\]]{1,3})?$`)
)

// backtrace finds the functions that were being called when it ended, innermost first: in the core dump's entry, else
// in what was printed after the engine's last words. Lines like these before them are free text.
func (d *downfall) backtrace() []string {
	if d.core != nil {
		if frames := functions(coreFrames(d.core.text)); len(frames) > 0 {
			return frames
		}
	}
	if d.run == nil || d.server == nil || d.server.wentWrong().IsZero() {
		return nil
	}
	from := d.server.wentWrong()
	var lines []string
	for i := range d.run.lines {
		if e := &d.run.lines[i]; !e.At.Before(from) && (d.after == nil || e.At.Before(d.after.began)) && e.Missing == "" {
			lines = append(lines, strings.Split(e.Message, "\n")...)
		}
	}
	return functions(firstTrace(lines))
}

// coreFrames are the frames of the first thread, which is the one that crashed.
func coreFrames(text string) []string {
	lines := strings.Split(text, "\n")
	if i := slices.IndexFunc(lines, reThread().MatchString); i >= 0 {
		lines = lines[i+1:]
	}
	return firstTrace(lines)
}

// firstTrace takes the frames up to where their numbers begin again.
func firstTrace(lines []string) []string {
	var frames []string
	last := -1
	for _, line := range lines {
		if len(line) > maxSymbol {
			continue
		}
		if strings.Contains(line, "\x1b") {
			line = reColour().ReplaceAllString(line, "")
		}
		if f := reFrame().FindStringSubmatch(line); f != nil {
			n := atoi(f[1])
			if n <= last {
				break
			}
			last = n
			frames = append(frames, f[2])
		} else if f := reSymbol().FindStringSubmatch(line); f != nil && last < 0 {
			frames = append(frames, f[1])
		}
		if len(frames) >= maxFrames {
			break
		}
	}
	return frames
}

// functions shortens the frames and leaves out those of the crash handler and of the libraries beneath.
func functions(frames []string) []string {
	var names []string
	for _, f := range frames {
		name := shortName(f)
		if name == "" || noise(name) || len(names) > 0 && names[len(names)-1] == name {
			continue
		}
		names = append(names, name)
	}
	return names
}

// shortName makes of a frame the name of its function: demangled, without what it is given and returns, without
// templates and places.
func shortName(frame string) string {
	s := frame
	for _, end := range []string{" at /", " from /", " at .", " /"} {
		s, _, _ = strings.Cut(s, end)
	}
	if word, _, _ := strings.Cut(s, " "); strings.HasPrefix(word, "_Z") {
		s = demangle.Filter(word, demangle.NoClones)
	}
	s = strings.ReplaceAll(s, "(anonymous namespace)", "{anonymous}")
	s = reLambda().ReplaceAllString(withoutBrackets(s), " lambda")
	s, _, _ = strings.Cut(s, "[clone")
	s = strings.TrimSuffix(strings.TrimSpace(s), " const")
	s, lambda := strings.CutSuffix(strings.TrimSpace(s), " lambda")
	s = strings.TrimSpace(strings.ReplaceAll(s, " lambda", "::lambda"))
	s = strings.ReplaceAll(s, "{anonymous}::", "")
	if i := strings.LastIndexByte(s, ' '); i >= 0 && !strings.Contains(s, "operator ") { // what it returns
		s = s[i+1:]
	}
	s = strings.TrimPrefix(strings.TrimLeft(s, "*&"), "::")
	if s == "n/a" || s == "??" || s == "" || !reName().MatchString(strings.ReplaceAll(s, "()", "")) {
		return ""
	}
	if lambda {
		s += " lambda"
	}
	return s
}

// withoutBrackets leaves out what stands in brackets and pointed brackets, but those of operators.
func withoutBrackets(s string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(s); i++ {
		if depth == 0 && strings.HasPrefix(s[i:], "operator") {
			n := len("operator")
			for i+n < len(s) && strings.IndexByte("()<>=-+*/!&|^%[],~", s[i+n]) >= 0 && n < len("operator")+3 {
				if s[i+n] == '(' && !strings.HasPrefix(s[i+n:], "()") {
					break
				}
				n++
			}
			b.WriteString(s[i : i+n])
			i += n - 1
			continue
		}
		switch c := s[i]; {
		case c == '(' || c == '<':
			depth++
		case (c == ')' || c == '>') && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// noise tells the functions that every trace has.
func noise(name string) bool {
	for _, prefix := range []string{"std::", "__gnu_cxx::", "__cxxabiv1::", "__libc_start", "__GI_", "__pthread_kill", "__cxa_", "_M_invoke"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"wait4", "__wait4", "waitpid", "__waitpid", "ggml_print_backtrace", "ggml_abort", "ggml_uncaught_exception",
		"abort", "raise", "gsignal", "pthread_kill", "_start", "start_thread", "clone", "clone3", "__clone", "__clone3", "__restore_rt",
		"operator()"}, name)
}

// shortTrace writes the functions in one line, each without the class that the one before had too.
func shortTrace(frames []string) string {
	var b strings.Builder
	class := ""
	for i, f := range frames {
		if i > 0 {
			b.WriteString(" <- ")
		}
		at := strings.LastIndex(f, "::")
		if at >= 0 && f[:at] == class && class != "" {
			b.WriteString(f[at+2:])
			continue
		}
		class = ""
		if at >= 0 {
			class = f[:at]
		}
		b.WriteString(f)
	}
	return b.String()
}
