#!/bin/sh
# A worker as they are: it computes something and writes it to a file. Nothing looks whether it is still its turn.
#
#   worker.sh FILE
set -eu
target=$1
text="version of worker ${TENURE_PROBE_WORKER:-?}"

echo "ready to write"
sleep 0.2 # the last of the work
printf '%s\n' "$text" >"$target.new.$$"
mv "$target.new.$$" "$target"
echo "written: $text"
