#!/usr/bin/env bash
# Fails when kernels that were compiled for newer processors define code that others could share: the
# linker keeps one copy of such a function, and on an older processor it must not be theirs.
#   tests/isolated_kernels.sh OBJECT…
set -euo pipefail
shared=$(nm --demangle --defined-only "$@" | grep -E '^[0-9a-f]+ [Wu] ' || true)
if [[ -n $shared ]]; then
  printf 'These functions can be shared with code for older processors; keep them in an unnamed namespace\n'
  printf 'or inline:\n%s\n' "$shared"
  exit 1
fi
printf '%d objects define no code that could be shared\n' "$#"
