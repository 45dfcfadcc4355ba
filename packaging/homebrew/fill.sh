#!/bin/sh
# Writes the Homebrew formula of a version to standard output: fill.sh VERSION DIST, where DIST has the archives' .sha256 files.
set -eu

[ $# -eq 2 ] || { printf 'usage: fill.sh VERSION DIST\n' >&2 && exit 2; }
version=$1
dist=$2
script=s/@VERSION@/$version/g
for target in aarch64-apple-darwin x86_64-apple-darwin aarch64-unknown-linux-musl x86_64-unknown-linux-musl; do
  read -r sum _ <"$dist/bolide-$version-$target.tar.gz.sha256"
  script="$script;s/@$target@/$sum/"
done
sed -e "1d;$script" "$(dirname "$0")/bolide.rb"
