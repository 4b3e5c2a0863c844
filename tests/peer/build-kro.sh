#!/usr/bin/env bash
# Builds kro's controller from its public Go module, once, into a cache outside the source tree.
#   build-kro.sh           prints the folder that holds `kro` and `crds/`
#   build-kro.sh --where   builds nothing
set -euo pipefail
module=github.com/kubernetes-sigs/kro
version=v0.9.4
# What `go mod download` must find, so that the peer is the same wherever it is built.
sum=h1:gynhldCLYW5x+M0c2Bf1ihoQTpNE68SKiXl1f6aX1kk=
out=${PLINTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plinth}/peers/kro-$version
if [ "${1:-}" = --where ]; then echo "$out"; exit 0; fi

mkdir -p "$out"
exec 9>"$out/.lock"; flock 9
if [ ! -x "$out/kro" ]; then
  command -v go >/dev/null || { echo "go is missing: https://go.dev/dl" >&2; exit 1; }
  echo "building kro $version (once)" >&2
  # Outside any module of ours: kro is built by its own go.mod.
  found=$(cd "$out" && go mod download -json "$module@$version")
  field() { sed -n "s/^\t\"$1\": \"\(.*\)\",*$/\1/p" <<<"$found"; }
  [ "$(field Sum)" = "$sum" ] || { echo "$module@$version has the sum $(field Sum), not $sum" >&2; exit 1; }
  flags="-s -w -X sigs.k8s.io/release-utils/version.gitVersion=$version"
  (cd "$out" && GOBIN=$out/bin CGO_ENABLED=0 nice -n 10 go install -p 1 -ldflags "$flags" "$module/cmd/controller@$version")
  rm -rf "$out/crds"
  mkdir "$out/crds"
  cp "$(field Dir)"/helm/crds/*.yaml "$out/crds/"
  chmod -R u+w "$out/crds"
  mv "$out/bin/controller" "$out/kro"
fi
echo "$out"
