package build

import (
	"fmt"
	"os"
	"path"
	"time"

	"github.com/goreleaser/nfpm/v2/files"
)

// link describes a link so that its target stays as it is spelled. nfpm tidies
// the target of what is called a link, "./a" to "a"; but what is called a file
// and is a link, it reads by itself and leaves alone. It skips such a one when
// a folder is at its end.
func link(source, to, target string, at time.Time) (*files.Content, error) {
	if target == path.Clean(target) {
		return &files.Content{Source: target, Destination: to, Type: files.TypeSymlink, FileInfo: fileInfo(0o777, at)}, nil
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("link %s to the folder %q: %w: spell the target %q, or leave out the native formats", to, target, ErrFormat, path.Clean(target))
	}
	return &files.Content{Source: source, Destination: to, Type: files.TypeFile, FileInfo: fileInfo(0o777, at)}, nil
}
