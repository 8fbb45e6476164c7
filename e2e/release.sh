#!/bin/sh
# Builds servers of other releases into bin/: kube-apiservers as kube-apiserver-1.N, and etcd as etcd-3.N: release.sh 1.34.4 3.6.16.
# With a cold cache a kube-apiserver takes eight minutes of CPU time, an etcd two. No file pins the modules of a kube-apiserver, since
# go.mod of k8s.io/kubernetes does.
set -eu
cd "$(dirname "$0")"
bin=$PWD/bin
for version; do
  minor=${version%.*}
  module=$(mktemp -d)
  case $version in
  3.*)
    name=etcd-$minor package=go.etcd.io/etcd/server/v3
    printf 'module release\ngo 1.24\nrequire %s v%s\n' "$package" "$version" > "$module/go.mod"
    flags='-s -w' ;;
  *)
    name=kube-apiserver-$minor package=k8s.io/kubernetes/cmd/kube-apiserver
    upstream=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    # The modules of Kubernetes' own repository are required there as v0.0.0.
    {
      echo 'module release'
      echo "require k8s.io/kubernetes v$version"
      sed -n "s|^\t\(k8s.io/[a-z-]*\) v0.0.0\$|replace \1 => \1 v0.${version#1.}|p" "$upstream"
    } > "$module/go.mod"
    flags="-s -w -X k8s.io/component-base/version.gitVersion=v$version" ;;
  esac
  (cd "$module" && go build -mod=mod -ldflags "$flags" -o "$bin/$name" "$package")
  rm -r "$module"
done
