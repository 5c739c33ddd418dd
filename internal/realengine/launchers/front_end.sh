#!/bin/sh
# The engine's front end, as thin as it can be: `serve` starts the llama-server that ONEBIT_LLAMA_SERVER
# names (default: this tree's own) as its child and starts it again when a signal killed it, from what
# the front end itself was started with; `bench` runs llama-bench.
self=$(readlink -f -- "$0") || exit 127
bin=${self%/*}/hrx/llama/bin
server=${ONEBIT_LLAMA_SERVER:-$bin/llama-server}

case ${1-} in
--version | version)
    version=$("$server" --version 2>&1) || exit 1
    version=${version#*version: }
    echo "1bit front end, llama-server ${version%%
*}"
    exit 0
    ;;
bench)
    shift
    exec "$bin/llama-bench" "$@"
    ;;
serve) shift ;;
*)
    echo "usage: 1bit serve ARGS... | bench ARGS... | --version" >&2
    exit 2
    ;;
esac

# --device is ours, not the server's; several slots share one KV pool.
left=$# parallel= unified=
while [ "$left" -gt 0 ]; do
    arg=$1
    shift
    left=$((left - 1))
    case $arg in
    --device)
        if [ "$left" -gt 0 ]; then
            shift
            left=$((left - 1))
        fi
        continue
        ;;
    --device=*) continue ;;
    --parallel | -np) parallel=yes ;;
    -kvu | --kv-unified | -no-kvu | --no-kv-unified) unified=yes ;;
    esac
    set -- "$@" "$arg"
done
if [ -n "$parallel" ] && [ -z "$unified" ]; then set -- "$@" -kvu; fi

child= ending= caught=
pass_on() {
    ending=$1 caught=yes
    if [ -n "$child" ]; then kill -s "$1" "$child" 2>/dev/null; fi
}
trap 'pass_on TERM' TERM
trap 'pass_on INT' INT

lives=0
while :; do
    "$server" "$@" &
    child=$!
    if [ -n "$ending" ]; then kill -s "$ending" "$child" 2>/dev/null; fi
    # A signal to us ends wait early, so wait until it returned without one.
    code=
    while :; do
        caught= before=$code
        wait "$child"
        code=$?
        if [ -z "$caught" ]; then break; fi
    done
    if [ "$code" -eq 127 ] && [ -n "$before" ]; then code=$before; fi
    child=
    if [ -n "$ending" ] && [ "$code" -gt 128 ]; then
        # It went by the signal that we passed on: go the same way.
        trap - "$ending"
        kill -s "$ending" $$
    fi
    if [ -n "$ending" ] || [ "$code" -le 128 ]; then exit "$code"; fi
    echo "1bit: llama-server was killed by signal $((code - 128)); starting it again" >&2
    lives=$((lives + 1))
    if [ "$lives" -gt 3 ]; then sleep 1; fi
done
