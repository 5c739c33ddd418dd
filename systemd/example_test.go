package systemd_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/systemd"
)

// Before it writes a drop-in a program asks what that would change: what it would hide, and who
// would win over it.
func ExampleReadSettings() {
	dir, err := os.MkdirTemp("", "units")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "llm.service.d")
	os.Mkdir(folder, 0o755)
	os.WriteFile(filepath.Join(folder, "hrx.conf"), []byte("[Service]\nEnvironment=SERVER=/opt/old/server\n"), 0o644)
	os.WriteFile(filepath.Join(folder, "zzz-local.conf"), []byte("[Service]\nUnsetEnvironment=SERVER\n"), 0o644)
	unit := &systemd.Unit{ID: "llm.service", SearchPath: []string{dir}} // a Manager gives one
	if unit, err = unit.Rescan(); err != nil {
		fmt.Println(err)
		return
	}

	assignment, err := systemd.QuoteAssignment("SERVER", "/opt/new 100%/server")
	if err != nil {
		fmt.Println(err)
		return
	}
	ours := filepath.Join(folder, "zz-ours.conf")
	settings, err := systemd.ReadSettings(unit, nil, systemd.Edit{Path: ours, Data: []byte("[Service]\nEnvironment=" + assignment + "\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("write:", assignment)
	for _, a := range settings.Below("SERVER", ours) {
		fmt.Printf("hides: %s:%d %s\n", filepath.Base(a.File), a.Line, a.Value)
	}
	for _, a := range settings.Above("SERVER", ours) {
		fmt.Printf("loses to: %s:%d %s\n", filepath.Base(a.File), a.Line, a.Kind)
	}
	// Output:
	// write: "SERVER=/opt/new 100%%/server"
	// hides: hrx.conf:2 /opt/old/server
	// loses to: zzz-local.conf:2 UnsetEnvironment
}

// What a command comes to depends on the files alone, as long as they say all that it needs.
func ExampleSettings_Argv() {
	file, err := systemd.ParseFile("/etc/systemd/system/llm.service", []byte(`[Service]
Environment=SERVER=/opt/1bit/llama-server "FLAGS=--ctx-size 8192 --alias 'small model'"
ExecStart=-/usr/bin/env ${SERVER} $FLAGS --price $$5 \
  # --verbose
  --host %i
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := systemd.Effective([]*systemd.File{file}, systemd.ReadEnvironmentFiles, systemd.Specifiers{'i': "box"})
	for _, command := range settings.Start() {
		argv, unsure := settings.Argv(command, nil)
		fmt.Printf("line %d: %q %q\n", command.Line, argv, unsure)
	}
	// Output:
	// line 3: ["/usr/bin/env" "/opt/1bit/llama-server" "--ctx-size" "8192" "--alias" "small model" "--price" "$5" "--host" "box"] ""
}
