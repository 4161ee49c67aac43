#!/bin/sh
# What NUNCHI_CUDA does to the commands of the Makefile. They are printed (make -n), not run.
cd "$(dirname "$0")/../.." || exit 1
unset NUNCHI_CUDA MAKEFLAGS
failed=0

expect() { # COMMANDS yes|no TEXT
  case $1 in
    '') found='no commands' ;;
    *"$3"*) found=yes ;;
    *) found=no ;;
  esac
  [ "$found" = "$2" ] && return
  printf 'expected "%s" in the commands: %s, found: %s\n%s\n' "$3" "$2" "$found" "$1"
  failed=1
}

expect "$(make -n run NUNCHI_CUDA=on)" yes ' -DNUNCHI_CUDA=on'
expect "$(NUNCHI_CUDA=on make -n build)" yes ' -DNUNCHI_CUDA=on'
expect "$(NUNCHI_CUDA=off make -n test)" yes ' -DNUNCHI_CUDA=off'
expect "$(make -n run)" no NUNCHI_CUDA
# The sanitizers and clang-tidy work without CUDA, whatever CI asks for.
expect "$(NUNCHI_CUDA=on make -n asan)" no NUNCHI_CUDA
expect "$(NUNCHI_CUDA=on make -n check)" no NUNCHI_CUDA
exit $failed
