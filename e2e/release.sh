#!/bin/sh
# Builds kube-apiservers of other releases of Kubernetes into bin/, each as kube-apiserver-1.N: release.sh 1.34.4 1.37.2.
# Each takes eight minutes of CPU time with a cold cache. No file pins their modules, since go.mod of k8s.io/kubernetes does.
set -eu
cd "$(dirname "$0")"
bin=$PWD/bin
for version; do
  minor=${version%.*}
  upstream=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  module=$(mktemp -d)
  # The modules of Kubernetes' own repository are required there as v0.0.0.
  {
    echo 'module release'
    echo "require k8s.io/kubernetes v$version"
    sed -n "s|^\t\(k8s.io/[a-z-]*\) v0.0.0\$|replace \1 => \1 v0.${version#1.}|p" "$upstream"
  } > "$module/go.mod"
  (cd "$module" && go build -mod=mod -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" \
    -o "$bin/kube-apiserver-$minor" k8s.io/kubernetes/cmd/kube-apiserver)
  rm -r "$module"
done
