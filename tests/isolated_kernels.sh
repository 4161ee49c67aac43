#!/usr/bin/env bash
# Fails if object files compiled for newer processors define weak functions that other code may define
# too: the linker keeps one copy of a weak function, and older processors cannot run the newer one.
# Functions with the instruction set in their name, compute<Cpu<…>>, are unique and therefore allowed.
#   tests/isolated_kernels.sh OBJECT…    object files in nunchi_kernels_v2.dir, nunchi_kernels_v3.dir, …
set -euo pipefail
shared=''
for object in "$@"; do
  version=$(sed -E 's/.*nunchi_kernels_v([0-9]).*/\1/' <<<"$object")
  allowed="<nunchi::kernels::Cpu<(nunchi::Isa)$((version - 1))>"
  shared+=$(nm --demangle --defined-only "$object" | grep -E '^[0-9a-f]+ [Wu] ' | grep -vF "$allowed" || true)
done
if [[ -n $shared ]]; then
  printf 'The linker could use these functions on older processors; move them to an unnamed namespace or\n'
  printf 'inline them:\n%s\n' "$shared"
  exit 1
fi
printf '%d object files define no such functions\n' "$#"
