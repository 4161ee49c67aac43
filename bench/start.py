#!/usr/bin/env python3
"""Measures how the program starts: the time of --version and --help, and the time and memory of a first sentence.

    bench/start.py PROGRAM [MODEL --sentence TEXT] [--rounds 20] [--threads N] [--json]

The first sentence is translated by a new process, from its start to its end; MODEL is a model folder of `nunchi train`
or `nunchi demo`. Times are in milliseconds of wall time (minimum and median over the rounds), memory is the peak
resident memory of the process in MiB.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def measure(command: list[str], text: str) -> tuple[float, float]:
    """Milliseconds and peak MiB of one process."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.stdin.write(text.encode())
    process.stdin.close()
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    milliseconds = (time.perf_counter() - begin) * 1e3
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {error.decode(errors='replace').strip()}")
    return milliseconds, usage.ru_maxrss / 1024


def figures_of(command: list[str], text: str, rounds: int) -> dict[str, float]:
    measure(command, text)  # reads the files into the page cache
    times, memory = zip(*(measure(command, text) for _ in range(rounds)))
    return {"min_ms": round(min(times), 1), "median_ms": round(statistics.median(times), 1),
            "peak_mib": round(max(memory), 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--sentence", default="")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if (options.model is None) != (options.sentence == ""):
        parser.error("MODEL and --sentence belong together")
    threads = [] if options.threads is None else ["--threads", str(options.threads)]
    commands = {"--version": (["--version"], ""), "--help": (["--help"], "")}
    if options.model is not None:
        commands["first sentence"] = (["translate", options.model, *threads], options.sentence + "\n")
    figures = {name: figures_of([options.program, *arguments], text, options.rounds)
               for name, (arguments, text) in commands.items()}
    if options.json:
        print(json.dumps(figures))
        return 0
    for name, figure in figures.items():
        print(f"{name:15} {figure['min_ms']:7.1f} ms (median {figure['median_ms']:.1f}), {figure['peak_mib']:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
