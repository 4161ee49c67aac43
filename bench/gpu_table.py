#!/usr/bin/env python3
"""Compares Nunchi with PyTorch on one NVIDIA GPU: rates, ratios and the fraction of the GEMM peak of each workload.

    bench/gpu_table.py [--rounds 1] [--only train,gpt2,translate,europarl] [--europarl FOLDER --lines 100000]

PyTorch uses its fastest settings: bf16, SDPA, torch.compile and fused Adam for training (pytorch_train.py), a static
cache and one CUDA graph per step for decoding (pytorch_decode.py). GPT-2 is trained without dropout on both sides. Each
round runs Nunchi, then PyTorch; the table shows medians, their ratio, and the goal: the ratio that Nunchi aims for.
With --europarl, both train on the first --lines pairs of train.en-de.{en,de}.xz in that folder, with 24,576 target
tokens per batch and a vocabulary of 32,000. PyTorch pads the batches and compiles; Nunchi's batches are ragged.
"""
import argparse
import itertools
import lzma
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from compare import BENCH, Failed, figures_of, flags

CONFIG = """output: {folder}/run
model: {{family: transformer, preset: base}}
tokenizer: {{kind: bpe, vocabulary: 32000, shared: true}}
data:
  root: {folder}
  train: {{source: train.en, target: train.de}}
training: {{batch_tokens: 24576, label_smoothing: 0.1, max_steps: 1000}}
"""

KINDS = "train", "gpt2", "translate", "europarl"


class Workload:
    def __init__(self, name: str, goal: float, unit: str, nunchi: list[str], peer: list[str]):
        self.name, self.goal, self.unit = name, goal, unit
        self.commands = {"nunchi": nunchi, "pytorch": peer}
        self.rates: dict[str, list[float]] = {"nunchi": [], "pytorch": []}
        self.peak = 0.0  # fraction of the GEMM peak of the GPU

    def run_once(self) -> None:
        for program, command in self.commands.items():
            figures = figures_of(command)
            self.rates[program].append(figures[self.unit])
            if program == "nunchi":
                self.peak = figures.get("peak_fraction", 0.0)

    def line(self) -> str:
        nunchi, pytorch = (statistics.median(self.rates[program]) for program in ("nunchi", "pytorch"))
        peak = f"{100 * self.peak:4.0f}%" if self.peak else "    -"
        return f"{self.name:<36}{pytorch:>12,.0f}{nunchi:>12,.0f}{nunchi / pytorch:>8.2f}x{self.goal:>7.1f}x{peak:>8}"


@dataclass(frozen=True)
class Batch:
    """A training batch. `dropout` is Nunchi's only; None: the preset's. PyTorch's models have fixed rates
    (pytorch_models.py): those of the presets base and big, none for gpt2."""
    sentences: int = 768
    length: int = 32
    vocab: int = 37000
    dropout: float | None = None


def train(a: argparse.Namespace, preset: str, goal: float, batch: Batch = Batch()) -> Workload:
    nunchi = [a.nunchi, "bench", "train",
              *flags(preset=preset, sentences=batch.sentences, length=batch.length, vocab=batch.vocab,
                     dropout=batch.dropout, steps=20, warmup=5, device="cuda", json=True)]
    peer = [a.python, str(BENCH / "pytorch_train.py"),
            *flags(model=preset, batch=batch.sentences, length=batch.length, vocab=batch.vocab, precision="bf16",
                   device="cuda", compile=True, steps=20, warmup=5)]
    name = f"train {preset}, {batch.sentences} x {batch.length:,}, V {batch.vocab:,}"
    return Workload(name, goal, "target_tokens_per_s", nunchi, peer)


def translate(a: argparse.Namespace, batch: int, beam: int, goal: float) -> Workload:
    nunchi = [a.nunchi, "bench", "translate", *flags(preset="base", sentences=batch, batch=batch, vocab=32000,
                                                     rounds=9, device="cuda", json=True), "--beam-size", str(beam)]
    peer = [a.python, str(BENCH / "pytorch_decode.py"), *flags(batch=batch, beam=beam)]
    kind = "greedy" if beam == 1 else f"beam {beam}"
    return Workload(f"translate base, {kind}, batch {batch}", goal, "tokens_per_s", nunchi, peer)


def europarl(a: argparse.Namespace, folder: Path) -> Workload:
    for side in ("en", "de"):
        with lzma.open(Path(a.europarl) / f"train.en-de.{side}.xz", "rt", encoding="utf-8") as lines:
            (folder / f"train.{side}").write_text("".join(itertools.islice(lines, a.lines)), encoding="utf-8")
    config = folder / "europarl.yaml"
    config.write_text(CONFIG.format(folder=folder))
    nunchi = [a.nunchi, "bench", "train", str(config), *flags(steps=100, warmup=100, device="cuda", json=True)]
    peer = [a.python, str(BENCH / "pytorch_train.py"),
            *flags(model="base", source=folder / "train.en", target=folder / "train.de", tokens=24576, vocab=32000,
                   precision="bf16", device="cuda", compile=True, steps=100, warmup=100)]
    return Workload("train base, Europarl, 24,576 tokens", 1.8, "target_tokens_per_s", nunchi, peer)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--nunchi", default="build/nunchi")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--only", default=",".join(KINDS), help="one or more of " + ", ".join(KINDS))
    p.add_argument("--europarl", help="folder with train.en-de.{en,de}.xz")
    p.add_argument("--lines", type=int, default=100000)
    a = p.parse_args()
    only = a.only.split(",")
    if unknown := set(only) - set(KINDS):
        p.error(f"--only must be one or more of {', '.join(KINDS)}, not {', '.join(sorted(unknown))}")
    if only == ["europarl"] and not a.europarl:
        p.error("--only europarl needs --europarl FOLDER")
    with tempfile.TemporaryDirectory() as scratch:
        workloads = []
        if "train" in only:
            workloads.append(train(a, "base", 1.5))
        if "translate" in only:
            workloads += [translate(a, *shape) for shape in ((1, 1, 2.0), (64, 1, 2.0), (64, 4, 4.0), (512, 4, 5.0))]
        if "train" in only:
            workloads.append(train(a, "big", 1.3))
        if "europarl" in only and a.europarl:
            workloads.append(europarl(a, Path(scratch)))
        if "gpt2" in only:
            workloads.append(train(a, "gpt2", 1.1, Batch(sentences=32, length=1024, vocab=50304, dropout=0.0)))
        print(f"{'workload':<36}{'PyTorch':>12}{'Nunchi':>12}{'ratio':>9}{'goal':>8}{'of peak':>8}", flush=True)
        for workload in workloads:
            try:
                for _ in range(a.rounds):
                    workload.run_once()
                print(workload.line(), flush=True)
            except Failed as failure:
                print(f"{workload.name:<36}failed: {failure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
