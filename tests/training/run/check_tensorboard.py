#!/usr/bin/env python3
"""Checks what TensorBoard reads from a run's event files: the scalars of its log.jsonl, the name of
the run, its options and final score (HPARAMS) and its sample translations (TEXT).

usage: check_tensorboard.py RUN        (needs the Python package tensorboard)
"""

import json
import math
import os
import sys

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.plugins.hparams import metadata
from tensorboard.util import tensor_util

TABLE = "validation/translations"


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


def scalars_of(events):
    return {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}


def same(a, b):
    return len(a) == len(b) and all(
        s == t and (x == y or (not math.isfinite(x) and not math.isfinite(y)))
        for (s, x), (t, y) in zip(a, b)
    )


def check_scalars(run, events):
    expected, found = from_json(run), scalars_of(events)
    final = {name: found.pop(name) for name in list(found) if name.startswith("final/")}
    if set(expected) != set(found):
        sys.exit(f"different names: {sorted(set(expected) ^ set(found))}")
    for name, values in expected.items():
        if not same(values, found[name]):
            sys.exit(f"{name}: log.jsonl has {values}, TensorBoard {found[name]}")
    print(f"{len(expected)} scalars, {sum(map(len, expected.values()))} values: equal")
    return final


def check_name(run):
    parent, name = os.path.split(os.path.abspath(run))
    names = list(EventMultiplexer().AddRunsFromDirectory(parent).Runs())
    if name not in names or any(other.startswith(name + "/") for other in names):
        sys.exit(f"the run is not called {name}: {names}")
    print(f"run: {name}")


def check_hparams(run, events, final):
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = metadata.parse_session_start_info_plugin_data(content).hparams
    if hparams["training.batch_tokens"].number_value < 1 or not hparams["model.family"].string_value:
        sys.exit(f"incomplete options: {hparams}")
    print(f"{len(hparams)} options, family {hparams['model.family'].string_value}")
    with open(os.path.join(run, "run.json"), encoding="utf-8") as file:
        model = json.load(file).get("model")
    if model is None:
        return
    content = events.SummaryMetadata("_hparams_/session_end_info").plugin_data.content
    if metadata.parse_session_end_info_plugin_data(content).end_time_secs <= 0:
        sys.exit("the session has no end")
    if "score" in model:
        (name, values), = final.items()
        if name != "final/" + model["metric"] or values[-1][1] != numpy.float32(model["score"]):
            sys.exit(f"run.json has {model}, TensorBoard {final}")
        print(f"{name}: {values[-1][1]:.4f}")


def check_samples(events):
    if TABLE not in events.Tags()["tensors"]:
        print("no sample translations")
        return
    tables = events.Tensors(TABLE)
    first = tensor_util.make_ndarray(tables[0].tensor_proto)
    for event in tables:
        table = tensor_util.make_ndarray(event.tensor_proto)
        if table.shape[1] != 3 or [cell.decode() for cell in table[0]] != ["source", "reference", "translation"]:
            sys.exit(f"not a table of translations: {table}")
        if (table[:, :2] != first[:, :2]).any():
            sys.exit("the sentences are not always the same")
    print(f"{len(first) - 1} sample translations at {len(tables)} validations")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    run = sys.argv[1]
    events = EventAccumulator(run, size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    final = check_scalars(run, events)
    check_name(run)
    check_hparams(run, events, final)
    check_samples(events)


if __name__ == "__main__":
    main()
