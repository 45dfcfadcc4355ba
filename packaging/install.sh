#!/bin/sh
# Installs Bolide from a release archive: the binary, shell completions, the man page and the licences.
#
#   install.sh [--version V] [--prefix DIR]     install, or replace an earlier version
#   install.sh --uninstall [--prefix DIR]       remove what was installed; data directories are not touched
#
# The archive's SHA-256 is compared with the published one before anything is unpacked. BOLIDE_DOWNLOAD_URL names another place with the layout of the
# release page: latest/download/version.txt and download/vVERSION/bolide-VERSION-TARGET.tar.gz with its .sha256 beside it (https:// or file://).
set -eu
umask 022

RELEASES=https://github.com/bolide-db/bolide/releases

main() {
  version=
  prefix=
  uninstall=
  while [ $# -gt 0 ]; do
    case $1 in
      --version | --prefix)
        [ $# -ge 2 ] || fail "$1: a value is missing"
        case $1 in --version) version=${2#v} ;; --prefix) prefix=$2 ;; esac
        shift
        ;;
      --version=*) version=${1#*=} version=${version#v} ;;
      --prefix=*) prefix=${1#*=} ;;
      --uninstall) uninstall=1 ;;
      --help | -h) usage && exit 0 ;;
      *) fail "unknown option: $1 (--help lists them)" ;;
    esac
    shift
  done
  choose_prefix
  if [ -n "$uninstall" ]; then
    remove
  else
    install_release
  fi
}

usage() {
  cat <<'TEXT'
Usage: install.sh [--version V] [--prefix DIR] [--uninstall]

  --version V    a version such as 0.1.0; by default the latest
  --prefix DIR   where to install, as an absolute path: DIR/bin and DIR/share; by default ~/.local, for root /usr/local
  --uninstall    remove what was installed there; data is not touched

BOLIDE_DOWNLOAD_URL names another release page (https:// or file://).
TEXT
}

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

choose_prefix() {
  if [ -z "$prefix" ]; then
    if [ "$(id -u)" -eq 0 ]; then
      prefix=/usr/local
    else
      prefix=${HOME:?HOME is not set; name a directory with --prefix}/.local
    fi
  fi
  case $prefix in
    /*) ;;
    *) fail "--prefix: expected an absolute path: $prefix" ;;
  esac
  list=$prefix/share/bolide/installed-files
}

install_release() {
  base=${BOLIDE_DOWNLOAD_URL:-$RELEASES}
  base=${base%/}
  case $base in
    https://* | file:///*) ;;
    *) fail "BOLIDE_DOWNLOAD_URL: expected https:// or file:///: $base" ;;
  esac
  target=$(target)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  if [ -z "$version" ]; then
    download "$base/latest/download/version.txt" "$work/version"
    version=$(tr -d ' \r\n' <"$work/version")
  fi
  case $version in
    '' | *[!0-9A-Za-z.+-]*) fail "not a version: $version" ;;
  esac
  folder=bolide-$version-$target
  archive=$folder.tar.gz
  download "$base/download/v$version/$archive" "$work/$archive"
  download "$base/download/v$version/$archive.sha256" "$work/sha256"
  verify "$work/$archive" "$work/sha256"
  tar -xzf "$work/$archive" -C "$work"
  [ -f "$work/$folder/bolide" ] || fail "$archive: there is no $folder/bolide in it"
  "$work/$folder/bolide" --version >/dev/null || fail "the binary does not run on this machine ($target)"
  place_all "$work/$folder"
  printf 'Bolide %s is installed: %s\n' "$version" "$prefix/bin/bolide"
  case :${PATH:-}: in
    *":$prefix/bin:"*) ;;
    *) printf 'Add %s to your PATH.\n' "$prefix/bin" ;;
  esac
}

# The target triple of this machine, as in the names of archives.
target() {
  system=$(uname -s)
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no archive for this processor: $machine" ;;
  esac
  case $system in
    Linux) printf '%s-unknown-linux-musl\n' "$machine" ;;
    Darwin)
      # A shell under Rosetta sees an Intel processor.
      [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" != 1 ] || machine=aarch64
      printf '%s-apple-darwin\n' "$machine"
      ;;
    *) fail "there is no archive for this system: $system" ;;
  esac
}

# download URL FILE
download() {
  case $1 in
    file://*) cp "${1#file://}" "$2" || fail "cannot read $1" ;;
    *)
      if command -v curl >/dev/null; then
        # Redirects may not lead to plain HTTP either.
        curl --fail --silent --show-error --location --proto '=https' --retry 3 --connect-timeout 20 --output "$2" "$1" || fail "cannot download $1"
      elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1" || fail "cannot download $1"
      else
        fail "curl or wget is needed"
      fi
      ;;
  esac
}

# verify FILE CHECKSUM_FILE, whose first word is the SHA-256 in hexadecimal
verify() {
  read -r expected _ <"$2" || [ -n "${expected:-}" ] || fail "the published checksum is empty"
  case $expected in
    *[!0-9a-f]*) fail "the published checksum is not a SHA-256" ;;
  esac
  [ ${#expected} -eq 64 ] || fail "the published checksum is not a SHA-256"
  if command -v sha256sum >/dev/null; then
    actual=$(sha256sum "$1")
  elif command -v shasum >/dev/null; then
    actual=$(shasum -a 256 "$1")
  else
    fail "sha256sum or shasum is needed to verify the archive"
  fi
  actual=${actual%% *}
  [ "$actual" = "$expected" ] || fail "the archive's SHA-256 is not the published one, so nothing was installed: $actual, expected $expected"
}

# place_all FOLDER: copies the files of the unpacked archive
place_all() {
  mkdir -p "$prefix/share/bolide"
  for file in LICENSE-MIT LICENSE-APACHE THIRD-PARTY.txt README.md; do
    place 644 "$1/$file" "share/doc/bolide/$file"
  done
  for page in "$1"/man/*.1; do
    place 644 "$page" "share/man/man1/${page##*/}"
  done
  place 644 "$1/completions/bolide.bash" share/bash-completion/completions/bolide
  place 644 "$1/completions/_bolide" share/zsh/site-functions/_bolide
  place 644 "$1/completions/bolide.fish" share/fish/vendor_completions.d/bolide.fish
  place 755 "$1/bolide" bin/bolide
}

# place MODE FILE DESTINATION: renamed into place, so that a running server keeps its file
place() {
  [ -f "$2" ] || fail "the archive has no ${2##*/}"
  is_ours "$3" || fail "the archive has a file that does not belong there: ${2##*/}"
  # Listed first, so that an installation that was interrupted can be removed. Files of an earlier version stay in the list.
  grep -qxF "$3" "$list" 2>/dev/null || printf '%s\n' "$3" >>"$list"
  mkdir -p "$prefix/${3%/*}"
  cp "$2" "$prefix/$3.new"
  chmod "$1" "$prefix/$3.new"
  mv -f "$prefix/$3.new" "$prefix/$3"
}

# Whether this script installs a file of this name, relative to the prefix.
is_ours() {
  case $1 in
    *..* | *[!0-9A-Za-z_./-]*) return 1 ;;
    bin/bolide | share/man/man1/bolide*.1 | share/doc/bolide/*) ;;
    share/bash-completion/completions/bolide | share/zsh/site-functions/_bolide | share/fish/vendor_completions.d/bolide.fish) ;;
    *) return 1 ;;
  esac
}

remove() {
  [ -f "$list" ] || fail "nothing is installed in $prefix by this script"
  while read -r file; do
    # Only what this script installs, whatever the list says.
    is_ours "$file" || fail "$list: not a file of Bolide: $file"
    rm -f "$prefix/$file"
  done <"$list"
  rm -f "$list"
  rmdir "$prefix/share/bolide" "$prefix/share/doc/bolide" 2>/dev/null || :
  printf 'Bolide is removed from %s. Data directories are where they were.\n' "$prefix"
}

# At the end of the file, so that nothing runs if only a part of it was downloaded.
main "$@"
