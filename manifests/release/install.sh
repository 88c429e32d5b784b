#!/bin/sh
# Installs the gatehouse executable from a release, after it has verified the file.
#
#   sh install.sh                     the newest release, into ~/.local/bin
#   VERSION=0.1.0 sh install.sh       a certain release
#   PREFIX=/usr/local sh install.sh   into /usr/local/bin
#
# The SHA-256 checksum is always verified. The signature of the checksums is verified if cosign is installed;
# VERIFY=signature makes a missing cosign an error. RELEASES names a mirror of the project's releases.
set -eu

repository=https://github.com/gatehouse-dev/gatehouse
releases=${RELEASES:-$repository/releases}
folder=${PREFIX:-$HOME/.local}/bin

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "no executable exists for $(uname -s). Install the npm package instead: npm install --global gatehouse" ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=x64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "no executable exists for $(uname -m). Install the npm package instead: npm install --global gatehouse" ;;
esac

if command -v curl >/dev/null; then
  download() { curl --fail --silent --show-error --location --output "$2" "$1"; }
elif command -v wget >/dev/null; then
  download() { wget --quiet --output-document="$2" "$1"; }
else
  fail 'curl or wget is required'
fi
if command -v sha256sum >/dev/null; then
  checksum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null; then
  checksum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
  fail 'sha256sum or shasum is required'
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

if [ -n "${VERSION:-}" ]; then
  files=$releases/download/v$VERSION
else
  files=$releases/latest/download
fi
download "$files/SHA256SUMS" "$work/SHA256SUMS" || fail "could not download $files/SHA256SUMS"

line=$(grep -E "^[0-9a-f]{64}  gatehouse-[0-9][0-9A-Za-z.-]*-$os-$arch\.gz$" "$work/SHA256SUMS") ||
  fail "the release has no executable for $os-$arch"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "SHA256SUMS lists several executables for $os-$arch"
expected=${line%% *}
name=${line##* }
version=${name#gatehouse-}
version=${version%-"$os-$arch".gz}
[ -z "${VERSION:-}" ] || [ "$version" = "$VERSION" ] || fail "expected version $VERSION, found $version"

if command -v cosign >/dev/null; then
  download "$files/SHA256SUMS.sigstore.json" "$work/bundle" || fail 'could not download the signature'
  cosign verify-blob --bundle "$work/bundle" \
    --certificate-identity "$repository/.github/workflows/release.yml@refs/tags/v$version" \
    --certificate-oidc-issuer https://token.actions.githubusercontent.com \
    "$work/SHA256SUMS" >/dev/null || fail 'the signature of SHA256SUMS is invalid; nothing was installed'
elif [ "${VERIFY:-}" = signature ]; then
  fail 'cosign is required to verify the signature; nothing was installed'
else
  printf 'cosign is not installed: verifying the checksum only\n' >&2
fi

printf 'Downloading gatehouse %s for %s-%s …\n' "$version" "$os" "$arch"
download "$files/$name" "$work/$name" || fail "could not download $files/$name"
[ "$(checksum "$work/$name")" = "$expected" ] || fail "the checksum of $name is wrong; nothing was installed"

gzip -dc "$work/$name" >"$work/gatehouse" || fail "$name is not a gzip file"
chmod 755 "$work/gatehouse"
mkdir -p "$folder"
# A rename replaces a running executable without an error.
cp "$work/gatehouse" "$folder/.gatehouse.$$" && mv "$folder/.gatehouse.$$" "$folder/gatehouse" ||
  fail "could not write to $folder"
printf 'Installed %s\n' "$folder/gatehouse"
case ":$PATH:" in
  *":$folder:"*) ;;
  *) printf 'Add %s to PATH to run it as gatehouse.\n' "$folder" ;;
esac
