// Command 1bit builds, installs, soaks and switches packages of the 1bit inference engine.
package main

import (
	"os"

	"github.com/1bit-systems/pkg/cmd"
)

func main() { os.Exit(cmd.Main()) }
