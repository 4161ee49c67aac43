#!/usr/bin/env bash
# Translates a file's lines one by one, in batches of several sizes and in another order, greedily and with
# a beam of 5, and reports whether the text was the same each time.
#   tests/inference/batch_invariance.sh MODEL FILE [PROGRAM]
set -euo pipefail

model=${1:?usage: batch_invariance.sh MODEL FILE [PROGRAM]}
file=${2:?usage: batch_invariance.sh MODEL FILE [PROGRAM]}
program=${3:-build/nunchi}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The lines in another order, each with its number.
awk 'BEGIN {srand(1)} {print rand() "\t" NR "\t" $0}' "$file" | sort -g | cut -f 2- >"$folder/shuffled"

failed=0
for beam in 1 5; do
  translate() { "$program" translate "$model" --beam-size "$beam" --batch-sentences "$1"; }
  translate 64 <"$file" >"$folder/expected"
  compare() {
    if cmp -s "$folder/expected" "$folder/found"; then
      echo "beam $beam, $1: the same $(wc -l <"$folder/found") lines"
    else
      echo "beam $beam, $1: $(diff "$folder/expected" "$folder/found" | grep -c '^<' || true) lines differ"
      failed=1
    fi
  }
  for size in 1 2 3 7 16 33; do
    translate "$size" <"$file" >"$folder/found"
    compare "batches of $size"
  done
  cut -f 2- "$folder/shuffled" | translate 64 >"$folder/translated"
  paste <(cut -f 1 "$folder/shuffled") "$folder/translated" | sort -n | cut -f 2- >"$folder/found"
  compare "shuffled"
done
exit $failed
