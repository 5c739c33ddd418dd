#!/bin/sh
# The whole story on a real engine under a real systemd: build two versions and a broken one, install them side
# by side, soak the candidate, switch, restart, let the broken one come back by itself, roll back, verify; then the
# doctor, a claim, and the report of a service that is killed.
#
# As root the story runs inside a throw-away systemd host of its own; otherwise against the user's own systemd,
# with a unit of its own that is removed at the end. What it prints on standard output is the program's own
# output; the commands stand on standard error.
set -eu
cd "$(dirname "$0")/../.."
say() { printf '%s\n' "$*" >&2; }

stage=$(mktemp -d /var/tmp/1bit-demo.XXXXXX)
trap 'chmod -R u+w "$stage"; rm -rf "$stage"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
chmod 755 "$stage"

command -v go >/dev/null || {
    say "demo: Go 1.26 or newer is needed, and go in the PATH"
    exit 1
}
say "setting up; the first time this takes a few minutes"
say "  packages of this machine that the demo needs (apt, only what is missing)"
internal/demo/setup.sh
export CGO_ENABLED=0
say "  compiling the program"
go build -o "$stage/1bit" ./cmd/1bit
go build -o "$stage/realengine" ./internal/realengine/cmd/realengine
say "  the engine (fetched once): two trees of it, one broken, and a tiny model"
"$stage/realengine" variant plain "$stage/tree"
"$stage/realengine" variant nan1 "$stage/tree-broken"
"$stage/realengine" model plain "$stage/model.gguf"
cp internal/demo/story.sh internal/demo/recipe.yaml internal/demo/soak.yaml "$stage/"
cp "$stage/tree/1bit" "$stage/front-end"
chmod -R go+rX "$stage"

if [ "$(id -u)" = 0 ]; then
    say "  a throw-away systemd host"
    go build -o "$stage/testhost" ./internal/testhost/cmd/testhost
    "$stage/testhost" run --user ai -- sh "$stage/story.sh" "$stage"
else
    sh "$stage/story.sh" "$stage"
fi
