#!/usr/bin/env bash
# Installs a build and uses it as other projects would: by find_package, by pkg-config, from a moved
# folder; then the program with its man page and shell completion.
#   install_test.sh BUILD SCRATCH CMAKE COMPILER
set -euo pipefail
build=$1 scratch=$2 cmake=$3 compiler=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch/source"

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix

for file in bin/nunchi include/nunchi/inference/pipeline.h share/man/man1/nunchi.1 \
  share/bash-completion/completions/nunchi share/zsh/site-functions/_nunchi \
  share/fish/vendor_completions.d/nunchi.fish share/doc/nunchi/{LICENSE,NOTICE,THIRD_PARTY.md}; do
  [[ -s $prefix/$file ]] || fail "$file is not installed."
done
"$prefix/bin/nunchi" help --man | cmp - "$prefix/share/man/man1/nunchi.1"
"$prefix/bin/nunchi" completion zsh | cmp - "$prefix/share/zsh/site-functions/_nunchi"
[[ ! -e $prefix/include/nunchi/kernels/cpu ]] || fail "Headers of the implementation are installed."

# Every installed header compiles without those of other libraries.
cp "$here"/consumer/* "$scratch/source"
(cd "$prefix/include" && find nunchi -name '*.h' | sort | sed 's/.*/#include "&"/') >"$scratch/source/every_header.cpp"

check() { # OUTPUT of the consumer
  [[ $1 == "nunchi "*"error: "*no-such-folder* ]] || fail "The consumer printed: $1"
}
"$cmake" -S "$scratch/source" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS=-Werror >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$cmake" --build "$scratch/build" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
check "$("$scratch/build/consumer")"

if command -v pkg-config >/dev/null; then
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name nunchi.pc)") pkg-config --cflags --libs nunchi)
  # shellcheck disable=SC2086
  "$compiler" -std=c++20 "$scratch/source/main.cpp" -o "$scratch/with_pkg_config" $flags
  check "$("$scratch/with_pkg_config")"
fi
rm -rf "$scratch"
