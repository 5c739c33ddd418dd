#!/bin/sh
# Runs the program of this name from ../libexec through the tree's own loader and libraries, with the
# CPU backend that suits this processor. Finds its tree from its own (resolved) place.
self=$(readlink -f -- "$0") || exit 127
name=${self##*/}
llama=${self%/*/*}
lib=$llama/lib

flags=
while read -r key rest; do
    case $key in
    flags | Features) flags=" ${rest#*:} "; break ;;
    esac
done 2>/dev/null </proc/cpuinfo

# has FLAG...: whether the processor has them all.
has() {
    for flag; do
        case $flags in
        *" $flag "*) ;;
        *) return 1 ;;
        esac
    done
}

# best NAME FLAG...: takes backend NAME if the tree has it and the processor its flags; the last one wins.
backend=
best() {
    candidate=$lib/backends/libggml-cpu-$1.so
    shift
    if [ -e "$candidate" ] && has "$@"; then backend=$candidate; fi
}

avx2="avx f16c avx2 bmi2 fma"
avx512="$avx2 avx512f avx512cd avx512vl avx512dq avx512bw"
best x64
best sse42 sse4_2
best sandybridge sse4_2 avx
best ivybridge sse4_2 avx f16c
best haswell $avx2
best skylakex $avx512
best icelake $avx512 avx512vbmi avx512_vnni
best zen4 $avx512 avx512vbmi avx512_vnni avx512_bf16
best armv8.0_1
best armv8.2_1 asimddp
best armv8.2_2 asimddp asimdhp

if [ -n "$backend" ]; then export GGML_BACKEND_PATH="$backend"; fi
#@ARGUMENTS@
exec "$lib/runtime/@LOADER@" --library-path "$lib/runtime:$lib" "$llama/libexec/$name" "$@"
