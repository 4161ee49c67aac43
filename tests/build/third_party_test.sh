#!/usr/bin/env bash
# THIRD_PARTY.md lists every package that scripts/install-dependencies installs, but for tools, and the
# NOTICE every library that is compiled into the program.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
failed=0
packages=$(sed -n '/^required=(/,/^)/p; /^[a-z]*=(.*)$/p' scripts/install-dependencies |
  sed 's/^[a-z]*=(//; s/)$//' | tr ' ' '\n' | grep -vE '^(cmake|ninja-build|)$')
[[ $packages == *libdnnl-dev* && $packages == *zlib1g-dev* ]] || { echo "found only: $packages"; failed=1; }
for package in $packages; do
  grep -qF "\`$package\`" THIRD_PARTY.md || { echo "THIRD_PARTY.md does not list $package."; failed=1; }
done
while IFS='|' read -r _ library _ _ how _; do
  library=${library# } library=${library% }
  # The exceptions of these licences ask for no notice in a binary.
  if [[ $how == *"compiled in"* && $library != GCC* && $library != CUDA* ]]; then
    grep -qF "$library" NOTICE || { echo "NOTICE does not name $library."; failed=1; }
  fi
done < <(grep '^| ' THIRD_PARTY.md | tail -n +2)
exit $failed
