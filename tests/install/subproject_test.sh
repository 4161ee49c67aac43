#!/usr/bin/env bash
# Configures a project that has Nunchi as a subfolder, without CLI11 and as position-independent code,
# and compiles the project's own files. (The library itself is compiled by the other tests.)
#   subproject_test.sh SOURCE SCRATCH CMAKE COMPILER
set -euo pipefail
source=$1 scratch=$2 cmake=$3 compiler=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch/source"
cp "$here"/consumer/* "$scratch/source"
echo '#include "nunchi/training/trainer.h"' >"$scratch/source/every_header.cpp"
"$cmake" -S "$scratch/source" -B "$scratch/build" -G Ninja -DNUNCHI_SOURCE="$source" -DNUNCHI_CUDA=off \
  -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DCMAKE_CXX_FLAGS=-Werror -DCMAKE_CXX_COMPILER="$compiler" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$cmake" --build "$scratch/build" --target CMakeFiles/consumer.dir/main.cpp.o CMakeFiles/consumer.dir/every_header.cpp.o

# Each command as one line. No grep -q in a pipe: it ends before it has read everything, which fails the pipe.
commands=$(grep '"command"' "$scratch/build/compile_commands.json")
if [[ -n $(grep "$scratch/source" <<<"$commands" | grep -E -e '-Wall|-Wextra') ]]; then
  echo "Nunchi's warnings reach the files of its users."
  exit 1
fi
if [[ $commands != *nunchi/kernels/cpu/norm.cpp* ]]; then
  echo "The library is not built."
  exit 1
fi
if [[ -n $(grep -v "$scratch/source" <<<"$commands" | grep -v -e '-fPIC') ]]; then
  echo "Some files of the library are not position-independent."
  exit 1
fi
rm -rf "$scratch"
