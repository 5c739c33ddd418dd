#!/bin/sh
# story.sh STAGE: the demo's story, told to the systemd of the user who runs it. See demo.sh.
set -eu
stage=$1
unit=1bit-demo.service
work=$(mktemp -d "$HOME/1bit-demo.XXXXXX")
config=${XDG_CONFIG_HOME:-$HOME/.config}
units=$config/systemd/user
policy= # the owner's configuration, where the demo has to make one
: "${XDG_RUNTIME_DIR:=/run/user/$(id -u)}"
export XDG_RUNTIME_DIR

clean_up() {
    trap - EXIT
    systemctl --user stop "$unit" 2>/dev/null || true
    rm -rf "${units:?}/$unit" "${units:?}/$unit.d"
    if [ -n "$policy" ]; then rm -f "$policy"; fi
    systemctl --user daemon-reload 2>/dev/null || true
    chmod -R u+w "$work"
    rm -rf "$work"
}
if [ -e "$units/$unit" ]; then
    echo "demo: $units/$unit is there already: remove it first" >&2
    exit 1
fi
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# run shows the command on standard error; its output is the demo's.
run() {
    printf '\n$ 1bit %s\n' "$*" >&2
    "$stage/1bit" --config "$work/config.yaml" "$@"
}
# must_fail N runs a command that has to end with status N.
must_fail() {
    want=$1 got=0
    shift
    run "$@" || got=$?
    if [ "$got" != "$want" ]; then
        echo "demo: 1bit $* ended with $got, not with $want" >&2
        exit 1
    fi
}
# expect TEXT COMMAND…: the command's output holds the text.
expect() {
    text=$1
    shift
    out=$(run "$@")
    printf '%s\n' "$out"
    case $out in
    *"$text"*) ;;
    *)
        echo "demo: 1bit $* does not say \"$text\"" >&2
        exit 1
        ;;
    esac
}

# The owner of this machine wants no question before a restart. Only the owner's own file can say so, and one that is
# there already is left as it is.
if [ ! -e "$config/1bit/config.yaml" ]; then
    policy=$config/1bit/config.yaml
    mkdir -p "$config/1bit"
    echo "restart: free" >"$policy"
elif ! grep -q '^restart: *free' "$config/1bit/config.yaml"; then
    echo "demo: nobody is here to be asked, and $config/1bit/config.yaml does not say \"restart: free\": run the demo as another user" >&2
    exit 1
fi
cat >"$work/config.yaml" <<EOF
scope: user
data_home: $work/packages
state_home: $work/state
restart: free
load_deadline: 30s
EOF
cd "$work"
sed "s|@MODEL@|$stage/model.gguf|" "$stage/soak.yaml" >soak.yaml

# Two versions and a broken one: fluent text with NaN under it.
run pkg build --recipe "$stage/recipe.yaml" --tree "$stage/tree" --out dist --version v2026.43 --id 3092596
run pkg build --recipe "$stage/recipe.yaml" --tree "$stage/tree" --out dist --version v2026.44 --id 7871c71
run pkg build --recipe "$stage/recipe.yaml" --tree "$stage/tree-broken" --out dist --version v2026.44.1 --id 0bad1ed
expect "version: newer" pkg diff dist/1bit-hrx-3092596-*.tar.zst dist/1bit-hrx-7871c71-*.tar.zst
for archive in dist/*.tar.zst; do run pkg install "$archive"; done
run pkg list

# The service as its owner wrote it: a unit, and a drop-in that names the first package.
mkdir -p "$units/$unit.d"
cp "$stage/front-end" "$work/1bit-front-end"
port=$((20000 + $$ % 20000))
cat >"$units/$unit" <<EOF
[Unit]
Description=Demo of the 1bit package manager

[Service]
ExecStart=$work/1bit-front-end serve -m $stage/model.gguf --host 127.0.0.1 --port $port --parallel 4 --ctx-size 8192 --threads 1
Restart=always
RestartSec=1
EOF
cat >"$units/$unit.d/hrx.conf" <<EOF
[Service]
Environment=ONEBIT_LLAMA_SERVER=$work/packages/1bit-hrx-3092596/hrx/llama/bin/llama-server
Environment=HSA_USERPTR_FOR_PAGED_MEM=0
EOF
systemctl --user daemon-reload
systemctl --user start "$unit"
run pkg status "$unit"

run accept run soak.yaml --package 7871c71 --evidence evidence

run pkg switch "$unit" 7871c71
expect "restart pending" pkg status "$unit"
run pkg restart "$unit" --watch 2s
run pkg status "$unit"

must_fail 1 pkg switch "$unit" 0bad1ed --restart --watch 2s
expect "0bad1ed is blocked" pkg status "$unit"

run pkg rollback "$unit" --restart --watch 2s
run pkg rollback "$unit"
run pkg status "$unit"
run pkg verify
run pkg history "$unit"
run pkg gc --dry-run

# What would bite on this host, if anything.
run doctor || true

# One claim of the GPU at a time; the lock is the demo's own.
export ONEBIT_PKG_CLAIM_LOCK="$work/gpu.lock"
run claim run -l demo -t 1 -- echo "the GPU is ours"
run claim status

# The service dies, and systemd starts it again: the report of it, as far as this account may read the journal.
kill -SEGV "$(systemctl --user show --property=MainPID --value "$unit")"
until [ "$(systemctl --user show --property=NRestarts --value "$unit")" -gt 0 ]; do sleep 0.2; done
if run incident "$unit" >incident.md; then sed -n 1,14p incident.md; fi
run incident list
