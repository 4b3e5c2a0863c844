#!/usr/bin/env bash
# Builds the Kubernetes programs that the tests start, once, into a cache outside the source tree.
#   build.sh [PROGRAM...]   default: kube-apiserver kubectl
#   build.sh --where        builds nothing
# Prints the folder that holds them. Where KUBEBUILDER_ASSETS is set, that folder is used as it is and nothing is built.
set -euo pipefail
if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then echo "$KUBEBUILDER_ASSETS"; exit 0; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -n 's/^require k8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' "$here/go.mod")
minor=${version#v1.}; minor=${minor%%.*}
flags="-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
key=$({ cat "$here/go.mod" "$here/go.sum"; echo "$flags"; } | sha256sum | cut -c1-12)
out=${PLINTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plinth}/servers/$version-$key
if [ "${1:-}" = --where ]; then echo "$out"; exit 0; fi

mkdir -p "$out"
exec 9>"$out/.lock"; flock 9
[ $# -gt 0 ] || set -- kube-apiserver kubectl
for program in "$@"; do
  [ -x "$out/$program" ] && continue
  echo "building $program $version (once)" >&2
  (cd "$here" && CGO_ENABLED=0 go build -mod=readonly -ldflags "$flags" -o "$out/.$program" "k8s.io/kubernetes/cmd/$program")
  mv "$out/.$program" "$out/$program"
done
etcd=$(command -v etcd || true)
[ -n "$etcd" ] || { echo "etcd is missing: apt-get install etcd-server" >&2; exit 1; }
ln -sfn "$etcd" "$out/etcd"
echo "$out"
