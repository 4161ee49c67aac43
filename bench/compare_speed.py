#!/usr/bin/env python3
"""Compares the speed of two builds of Nunchi: rates, memory and the ratio of medians for each workload.

    bench/compare_speed.py OLD NEW [--device cpu|cuda] [--threads 2] [--rounds 5] [--only train,…]
        [--data MULTI30K] [--europarl FOLDER --lines 60000]

OLD and NEW are programs. Each round runs both, in an order that alternates from round to round. The workloads are
training, attention and translation in the sizes that on_cpu() and on_gpu() list. --data adds training of the tiny model on
real text (CPU), --europarl training of the base model on real text (GPU). The ratio of a metric is above 1 if the new
build is faster, also for times. The exit code is 1 if any ratio is below 1 - --tolerance (0.03) or a run fails.
"""
import argparse
import lzma
import statistics
import sys
import tempfile
from itertools import islice
from pathlib import Path

from compare import Failed, figures_of, flags

CONFIG = """output: {folder}/run
model: {{family: transformer, preset: {preset}}}
tokenizer: {{kind: bpe, vocabulary: {vocabulary}, shared: true}}
data:
  root: {data}
  train: {{source: train.en, target: train.de}}
training: {{batch_tokens: {tokens}, label_smoothing: 0.1, max_steps: 1000}}
"""


class Workload:
    def __init__(self, name: str, arguments: list[str], metrics: tuple[str, ...]):
        self.name, self.arguments, self.metrics = name, arguments, metrics
        self.figures: dict[str, list[dict[str, float]]] = {"old": [], "new": []}

    def run(self, build: str, program: str) -> None:
        self.figures[build].append(figures_of([program, "bench", *self.arguments]))

    def median(self, build: str, metric: str) -> float:
        return statistics.median(figures[metric] for figures in self.figures[build])

    def ratio(self, metric: str) -> float:
        """Above 1 if the new build is faster."""
        old, new = self.median("old", metric), self.median("new", metric)
        return old / new if metric.endswith("_ms") else new / old

    def line(self) -> str:
        columns = [f"{self.name:<38}"]
        for metric in self.metrics:
            columns.append(f"{self.median('old', metric):>12,.1f}{self.median('new', metric):>12,.1f}"
                         f"{self.ratio(metric):>8.3f}x  {metric}")
        memory = [self.median(build, "peak_mib") for build in ("old", "new")]
        columns.append(f"   {memory[0]:,.0f} -> {memory[1]:,.0f} MiB")
        return "".join(columns)


def train(name: str, **options) -> Workload:
    return Workload(name, ["train", *flags(**options)], ("target_tokens_per_s",))


def translate(batch: int, beam: int, **options) -> Workload:
    kind = "greedy" if beam == 1 else f"beam {beam}"
    arguments = ["translate", *flags(preset="base", batch=batch, vocab=32000, **options), "--beam-size", str(beam)]
    return Workload(f"translate base, {kind}, batch {batch}", arguments, ("tokens_per_s",))


def attention(length: int, **options) -> Workload:
    return Workload(f"attention, {length:,} tokens", ["attention", *flags(length=length, **options)],
                    ("forward_ms", "backward_ms"))


def on_cpu(a: argparse.Namespace, config: str | None) -> dict[str, list[Workload]]:
    common = {"threads": a.threads, "json": True}
    real = [Workload("train tiny, real text", ["train", config, *flags(steps=20, **common)], ("target_tokens_per_s",))]
    return {
        "train": [train("train base, 128 x 32, V 32,000", preset="base", sentences=128, length=32, vocab=32000, steps=2,
                        warmup=1, **common),
                  train("train tiny, 64 x 24, V 8,000", preset="tiny", sentences=64, length=24, vocab=8000, steps=20,
                        **common)] + (real if config else []),
        "attention": [attention(4096, repeats=3, **common)],
        "translate": [translate(1, 1, sentences=8, **common), translate(32, 1, sentences=64, **common),
                      translate(32, 4, sentences=32, **common)],
    }


def on_gpu(config: str | None) -> dict[str, list[Workload]]:
    common = {"device": "cuda", "json": True}
    steps = {"steps": 20, "warmup": 5}
    real = [Workload("train base, Europarl", ["train", config, *flags(**steps, **common)], ("target_tokens_per_s",))]
    return {
        "train": [train("train base, 768 x 32, V 37,000", preset="base", sentences=768, length=32, vocab=37000,
                        **steps, **common),
                  train("train big, 768 x 32, V 37,000", preset="big", sentences=768, length=32, vocab=37000, **steps,
                        **common),
                  train("train gpt2, 32 x 1,024, V 50,304", preset="gpt2", sentences=32, length=1024, vocab=50304,
                        dropout=0.0, **steps, **common)] + (real if config else []),
        "attention": [attention(4096, **common), attention(16384, **common)],
        "translate": [translate(batch, beam, sentences=batch, rounds=9, **common)
                      for batch, beam in ((1, 1), (64, 1), (64, 4), (512, 4))],
    }


def text_config(a: argparse.Namespace, folder: Path) -> str | None:
    """The config of the workload on real text, if its data are given."""
    if a.device == "cpu" and a.data:
        text = CONFIG.format(folder=folder, preset="tiny", vocabulary=8000, data=a.data.resolve(), tokens=2750)
    elif a.device == "cuda" and a.europarl:
        for side in ("en", "de"):
            with lzma.open(a.europarl / f"train.en-de.{side}.xz", "rt", encoding="utf-8") as lines:
                (folder / f"train.{side}").write_text("".join(islice(lines, a.lines)), encoding="utf-8")
        text = CONFIG.format(folder=folder, preset="base", vocabulary=32000, data=folder, tokens=24576)
    else:
        return None
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="kinds of workloads: train, attention, translate; separated by commas")
    parser.add_argument("--data", type=Path, help="folder of Multi30k with train.en and train.de")
    parser.add_argument("--europarl", type=Path, help="folder with train.en-de.{en,de}.xz")
    parser.add_argument("--lines", type=int, default=60000, help="pairs of --europarl to use")
    parser.add_argument("--tolerance", type=float, default=0.03)
    a = parser.parse_args()
    programs = {"old": a.old, "new": a.new}
    slower = 0
    with tempfile.TemporaryDirectory() as scratch:
        config = text_config(a, Path(scratch))
        kinds = on_cpu(a, config) if a.device == "cpu" else on_gpu(config)
        for kind, workloads in kinds.items():
            if a.only and kind not in a.only.split(","):
                continue
            for workload in workloads:
                for i in range(a.rounds):
                    for build in ("old", "new") if i % 2 == 0 else ("new", "old"):
                        workload.run(build, programs[build])
                print(workload.line(), flush=True)
                slower += any(workload.ratio(metric) < 1 - a.tolerance for metric in workload.metrics)
    return 1 if slower else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"compare_speed: {failure}")
