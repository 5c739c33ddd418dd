package fleet

import (
	"fmt"
	"strings"
)

// unloaded says what a reload by anybody would arm, where the files say other than what is loaded; "" where they do not.
func (v *view) unloaded(armed, disk PackageRef) string {
	var differ []string
	value := func(b binding, key string) string {
		for _, a := range b {
			if a.Key == key {
				return a.Value
			}
		}
		return "nothing"
	}
	for i, b := range []binding{v.onDisk, v.armed} {
		for _, a := range b {
			says, has := value(v.onDisk, a.Key), value(v.armed, a.Key)
			if says != has && (i == 0 || says == "nothing") {
				differ = append(differ, fmt.Sprintf("%s is %s in the files and %s in what is loaded", a.Key, says, has))
			}
		}
	}
	if len(differ) == 0 {
		return ""
	}
	what := fmt.Sprintf("its files say %s and the manager has loaded %s", orNothing(disk.Name), orNothing(armed.Name))
	if disk.same(armed) {
		what = "its files say something else than the manager has loaded"
	}
	return fmt.Sprintf("%s: a reload by anybody arms what the files say (%s)", what, strings.Join(differ, "; "))
}
