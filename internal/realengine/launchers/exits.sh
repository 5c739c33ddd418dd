#!/bin/sh
# A llama-server that gives up at once.
if [ "${1-}" = --version ]; then echo "version: broken (exits)" >&2; exit 0; fi
echo "llama-server: error: no usable device" >&2
exit 1
