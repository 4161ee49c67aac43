#!/bin/sh
# Compares the base model with PyTorch: logits, loss, every gradient, three steps of Adam.
#
#     tests/golden/compare_base.sh              needs build/nunchi_tests, PyTorch and 400 MB in $TMPDIR
#     PYTHON=venv/bin/python tests/golden/compare_base.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
tests=$root/build/nunchi_tests
filter='GoldenBase.*'

fail() {
  echo "compare_base.sh: $*" >&2
  exit 1
}

"$python" -c 'import numpy, torch' 2>/dev/null ||
  fail "$python cannot import torch and numpy. Install them ('pip install torch numpy')" \
    "or name a Python that has them: PYTHON=... $0"
[ -x "$tests" ] || fail "there is no $tests. Build it first: make test"
"$tests" --gtest_list_tests --gtest_filter="$filter" | grep -q '^  ' ||
  fail "$tests has no test named $filter."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
"$python" "$root/tests/golden/make_golden.py" --base "$folder"
NUNCHI_GOLDEN_BASE=$folder/base.safetensors "$tests" --gtest_filter="$filter"
