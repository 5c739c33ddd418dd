package fleet

import (
	"fmt"

	"github.com/1bit-systems/pkg/systemd"
)

// giveWay says what to do about a line that would win over our drop-in.
func giveWay(a systemd.Assignment) string {
	switch a.Kind {
	case systemd.KindEnvironmentFile: // read after every Environment=, whatever its unit file is called
		return "take the line out of that file and write it as Environment= into the unit or a drop-in"
	case systemd.KindUnsetEnvironment: // so is this
		return "take the variable out of it"
	}
	return fmt.Sprintf("give its file a name that sorts before %s, or take the line out", dropInName)
}
