package systemd

import (
	"fmt"
	"slices"
	"strings"
)

// Refused says why systemd would not start the unit, whatever its program does: the unit file
// is masked or has an error, ExecStart= is missing or there is one too many. It is "" when the
// files show no reason. unsure says why there may be one all the same.
func (s *Settings) Refused() (why, unsure string) {
	if s.refused != "" {
		return s.refused, ""
	}
	for _, c := range s.start {
		unsure = firstOf(unsure, c.Unsure)
	}
	if len(s.files) > 0 && isUnitFile(s.files[0].Path) {
		unsure = firstOf(s.doubts[s.files[0].Path].What, unsure)
	}
	return "", firstOf(unsure, firstOf(s.disputed, s.unread))
}

// doubted says why a line may be lost: systemd may not have read its file as far as that.
func (s *Settings) doubted(file string, line int) string {
	if doubt, ok := s.doubts[file]; ok && line > doubt.Line {
		return "the rest of the file may be lost, " + doubt.String()
	}
	return ""
}

// doubt notes a line because of which systemd may read its file no further.
func (m *merger) doubt(what string) {
	if _, have := m.settings.doubts[m.file]; !have {
		m.settings.doubts[m.file] = Problem{File: m.file, Line: m.line, What: what}
	}
}

// refuse notes the first reason, and every one as a problem.
func (m *merger) refuse(file string, line int, format string, args ...any) {
	p := Problem{File: file, Line: line, What: "the unit does not start, " + fmt.Sprintf(format, args...), Fatal: true}
	m.settings.Problems = append(m.settings.Problems, p)
	m.settings.refused = firstOf(m.settings.refused, p.String())
}

// checkUnit is systemd's service_verify, as far as the keys concern us, and what makes it not
// load a unit file at all.
func (m *merger) checkUnit() {
	s := m.settings
	if s.refused != "" || len(s.files) == 0 || !isUnitFile(s.files[0].Path) {
		return
	}
	file := s.files[0]
	if file.Empty {
		m.refuse(file.Path, 0, "an empty unit file masks it")
		return
	}
	if i := slices.IndexFunc(file.Problems, func(p Problem) bool { return p.Fatal }); i >= 0 {
		m.refuse(file.Path, file.Problems[i].Line, "its file has an error: %s", file.Problems[i].What)
		return
	}
	kind, restart := s.Last("Service", "Type"), s.Last("Service", "Restart")
	oneshot := kind.Line.Value == "oneshot"
	other := kind.Line.Value != "" && !oneshot
	unsure := slices.ContainsFunc(s.start, func(c StartCommand) bool { return c.Unsure != "" })
	stays := slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(s.Last("Service", "RemainAfterExit").Line.Value))
	succeeds := len(s.Values("Unit", "SuccessAction")) > 0
	switch {
	case len(s.start) == 0 && (other || !succeeds && (m.stops == 0 || !stays)):
		m.refuse(file.Path, 0, "there is no ExecStart=")
	case len(s.start) > 1 && !oneshot && !unsure:
		second := s.start[1]
		m.refuse(second.File, second.Line, "there is more than one ExecStart=, which only a Type=oneshot unit may have: %s", second.Value)
	case oneshot && (restart.Line.Value == "always" || restart.Line.Value == "on-success"):
		m.refuse(restart.File, restart.Number, "a Type=oneshot unit cannot have Restart=%s", restart.Line.Value)
	case kind.Line.Value == "dbus" && s.Last("Service", "BusName").Line.Value == "":
		m.refuse(kind.File, kind.Number, "there is no BusName= for Type=dbus")
	}
}
