// Package deps holds the module's dependencies until their first user lands.
package deps

import (
	_ "github.com/Masterminds/semver/v3"
	_ "github.com/coreos/go-systemd/v22/dbus"
	_ "github.com/gofrs/flock"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/renameio/v2"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/viper"
	_ "github.com/vbauerster/mpb/v8"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/stat/distuv"
)
