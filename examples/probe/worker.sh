#!/bin/sh
# A worker that computes something and writes it to a file.
#
#   worker.sh FILE              as workers are: it writes what it has, whoever's turn it is
#   worker.sh --checked FILE    asks before the write whether it is still its turn
#   worker.sh --fenced FILE     shows its token in the same step as the write
set -eu

how=plain
case $1 in
--checked | --fenced) how=$1 && shift ;;
esac
target=$1
text="version of worker ${TENURE_PROBE_WORKER:-?}"

if [ "$how" = --checked ]; then
    tenure check
fi
echo "ready to write"
sleep 0.5 # the last of the work

if [ "$how" = --fenced ]; then
    # Refused, it says why on stderr and ends with 76, and so does this script.
    printf '%s\n' "$text" | tenure put --sink "file:$(dirname "$target")" --name "$(basename "$target")"
else
    printf '%s\n' "$text" >"$target.new.$$"
    mv "$target.new.$$" "$target"
fi
echo "written: $text"
