#!/usr/bin/env python3
"""Measures how much other programs on the same cores slow down translating and training a small model.

    bench/busy_cores.py PROGRAM RUN [--rounds 3] [--loops N] [--json]

RUN is a run folder of `nunchi demo`, with its data. Each round measures, one after another, a quiet machine and one with
endless loops beside the program (as many as there are cores; --loops), each with all threads and with one. Nothing
else should run on the machine. Prints target tokens per second (medians over the rounds) and the part of the quiet speed
that is left.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from compare import Failed, figures_of

@contextmanager
def busy_loops(count: int):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()


def workloads(program: str, run: Path) -> dict[str, list[str]]:
    newest = max((run / "checkpoints").glob("step-*"), key=lambda path: int(path.name.split("-")[1]))
    return {"translate": [program, "bench", "translate", str(run), "-i", str(run / "data/held-out.ko"),
                          "--sentences", "1000", "--batch", "64", "--beam-size", "1", "--rounds", "3", "--json"],
            "train": [program, "bench", "train", str(newest / "config.yaml"), "--steps", "60", "--json"]}


def rate_of(figures: dict[str, float]) -> float:
    return figures["target_tokens_per_s"] if "target_tokens_per_s" in figures else figures["tokens_per_s"]


def measure(options) -> dict[str, dict[str, float]]:
    rates: dict[str, dict[str, list[float]]] = {}
    for _ in range(options.rounds):
        for name, command in workloads(options.program, Path(options.run)).items():
            for threads in ([], ["--threads", "1"]):
                for loops in (0, options.loops):
                    with busy_loops(loops):
                        rate = rate_of(figures_of(command + threads))
                    case = ("busy" if loops else "quiet") + (", one thread" if threads else "")
                    rates.setdefault(name, {}).setdefault(case, []).append(rate)
    return {name: {case: statistics.median(values) for case, values in cases.items()} for name, cases in rates.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loops", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        table = measure(options)
    except (Failed, ValueError) as error:
        print(f"busy_cores.py: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(table))
        return 0
    for name, cases in table.items():
        for case, rate in cases.items():
            print(f"{name:10} {case:18} {rate:10,.0f} tokens/s  {rate / cases['quiet']:5.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
