#!/usr/bin/env bash
# Builds what renders charts by Helm's own engine, once, into a cache outside the source tree, and prints where it is.
#   build.sh --where   builds nothing
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
key=$(cat "$here/go.mod" "$here/go.sum" "$here/main.go" | sha256sum | cut -c1-12)
out=${PLINTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plinth}/helm/$key
if [ "${1:-}" != --where ] && [ ! -x "$out/render" ]; then
  mkdir -p "$out"
  exec 9>"$out/.lock"; flock 9
  if [ ! -x "$out/render" ]; then
    echo "building Helm's engine (once)" >&2
    (cd "$here" && CGO_ENABLED=0 go build -mod=readonly -ldflags "-s -w" -o "$out/.render" .)
    mv "$out/.render" "$out/render"
  fi
fi
echo "$out/render"
