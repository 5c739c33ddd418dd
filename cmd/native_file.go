package cmd

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// nativeFiles are the packages of package managers, by how the file begins or how its name ends.
var nativeFiles = []struct{ begins, ends, what, install string }{
	{"!<arch>\n", "", "a Debian package", "apt-get install "},
	{"\xed\xab\xee\xdb", "", "an RPM package", "dnf install "},
	{"\x28\xb5\x2f\xfd", ".pkg.tar.zst", "an Arch Linux package", "pacman -U "},
}

// refuseNative says of a package that is for a package manager which one that is. What cannot be read is for
// others to say.
func refuseNative(file string) error {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return nil
	}
	for _, native := range nativeFiles {
		if !bytes.HasPrefix(head[:n], []byte(native.begins)) || !strings.HasSuffix(file, native.ends) {
			continue
		}
		where := file
		if !filepath.IsAbs(file) {
			where = "./" + filepath.Clean(file)
		}
		return usagef("%s is %s: install it with %s%s (as root)", file, native.what, native.install, where)
	}
	return nil
}
