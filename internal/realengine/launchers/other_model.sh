
# Serve the tree's own model in place of the one that was asked for.
left=$#
while [ "$left" -gt 0 ]; do
    arg=$1
    shift
    left=$((left - 1))
    set -- "$@" "$arg"
    case $arg in
    -m | --model)
        if [ "$left" -gt 0 ]; then
            shift
            left=$((left - 1))
            set -- "$@" "$llama/share/model.gguf"
        fi
        ;;
    esac
done
