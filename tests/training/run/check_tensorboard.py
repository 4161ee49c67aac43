#!/usr/bin/env python3
"""Checks that TensorBoard reads the same values from a run's events as are in its log.jsonl.

usage: check_tensorboard.py RUN        (needs the Python package tensorboard)
"""

import json
import math
import os
import sys

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def from_json(run):
    scalars = {}
    with open(os.path.join(run, "log.jsonl"), encoding="utf-8") as lines:
        for line in lines:
            values = json.loads(line)
            step = values.pop("step")
            for name, value in values.items():
                number = numpy.float32(math.nan if value is None else value)
                scalars.setdefault(name, []).append((step, float(number)))
    return scalars


def from_tensorboard(run):
    events = EventAccumulator(os.path.join(run, "events"), size_guidance={"scalars": 0})
    events.Reload()
    return {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}


def same(a, b):
    return len(a) == len(b) and all(
        s == t and (x == y or (not math.isfinite(x) and not math.isfinite(y)))
        for (s, x), (t, y) in zip(a, b)
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    expected, found = from_json(sys.argv[1]), from_tensorboard(sys.argv[1])
    if set(expected) != set(found):
        sys.exit(f"different names: {sorted(set(expected) ^ set(found))}")
    for name, values in expected.items():
        if not same(values, found[name]):
            sys.exit(f"{name}: log.jsonl has {values}, TensorBoard {found[name]}")
    print(f"{len(expected)} scalars, {sum(map(len, expected.values()))} values: equal")


if __name__ == "__main__":
    main()
