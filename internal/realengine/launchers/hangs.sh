#!/bin/sh
# A llama-server that hangs while it loads: it never listens.
if [ "${1-}" = --version ]; then echo "version: broken (hangs)" >&2; exit 0; fi
echo "llama-server: loading model" >&2
trap 'exit 143' TERM
trap 'exit 130' INT
while :; do sleep 1; done
