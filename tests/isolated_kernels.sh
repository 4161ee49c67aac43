#!/usr/bin/env bash
# Fails when kernels that were compiled for newer processors define code that others could share: the
# linker keeps one copy of such a function, and on an older processor it must not be theirs. A kernel
# is named after its instruction set, compute<Cpu<…>>, and may be defined for that one alone.
#   tests/isolated_kernels.sh OBJECT…    in folders nunchi_kernels_v2.dir, nunchi_kernels_v3.dir, …
set -euo pipefail
shared=''
for object in "$@"; do
  version=$(sed -E 's/.*nunchi_kernels_v([0-9]).*/\1/' <<<"$object")
  own="<nunchi::kernels::Cpu<(nunchi::Isa)$((version - 1))>"
  shared+=$(nm --demangle --defined-only "$object" | grep -E '^[0-9a-f]+ [Wu] ' | grep -vF "$own" || true)
done
if [[ -n $shared ]]; then
  printf 'These functions can be shared with code for older processors; keep them in an unnamed namespace\n'
  printf 'or inline:\n%s\n' "$shared"
  exit 1
fi
printf '%d objects define no code that could be shared\n' "$#"
