#!/usr/bin/env python3
"""Two experiments on Europarl about the length of sentences. Each trains models and prints a table.

    bench/by_length.py bottleneck --root FOLDER [--device cuda] [--minutes 1.5]
    bench/by_length.py extrapolation --root FOLDER [--device cuda] [--steps 3000] [--jobs 4]

`bottleneck` trains a recurrent model without attention, one with attention and a Transformer. They have about the
same number of parameters and train for the same time (configs/bottleneck-*.yaml). It prints BLEU by source length.

`extrapolation` trains one Transformer for each kind of position on pairs of at most 20 tokens
(configs/extrapolation.yaml). It prints the loss in nats per target token by the length of the pairs.

--root is the folder with train.en-de.{en,de}.xz and dev.en-de.{en,de}. Models, logs and translations go to --output; a
model that exists there is not trained again. Lengths are in tokens, </s> included.
"""
import argparse
import concurrent.futures
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from compare import Failed, figures_of

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
# Upper limits of the length buckets.
BOTTLENECK_LENGTHS = [15, 30, 60]
EXTRAPOLATION_LENGTHS = [20, 30, 40, 60, 100]


@dataclass
class Model:
    name: str
    config: str
    options: dict[str, object] = field(default_factory=dict)


BOTTLENECK_MODELS = [
    Model("rnn", "bottleneck-rnn", {"model.attention": "none"}),
    Model("rnn, attention", "bottleneck-rnn", {"model.attention": "dot"}),
    Model("transformer", "bottleneck-transformer"),
]
EXTRAPOLATION_MODELS = [
    Model(name, "extrapolation", {"model.position": name.split(",")[0], **options}) for name, options in [
        ("sinusoidal", {}),
        ("learned", {"model.max_positions": 256}),
        ("rotary", {}),
        ("relative, t5", {"model.relative_kind": "t5"}),
        ("relative, clipped", {"model.relative_kind": "clipped"}),
        ("alibi", {}),
        ("none", {}),
    ]]


def run(command: list, stderr: bool = False, **options) -> str:
    """Returns the stdout of the command, or its stderr."""
    done = subprocess.run([str(word) for word in command], text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: {done.stderr.strip()[-500:]}")
    return done.stderr if stderr else done.stdout


def read_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


class Experiment:
    def __init__(self, a: argparse.Namespace, models: list[Model], limits: list[int]):
        self.a, self.models, self.limits = a, models, limits
        self.folder = Path(a.output)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.device_options = ["--device", a.device]

    def run_folder(self, model: Model) -> Path:
        """Its name contains the training budget, so that a call with another budget trains another model."""
        budget = f"{self.a.minutes:g}min" if self.a.command == "bottleneck" else f"{self.a.steps}steps"
        return self.folder / f"{model.name.replace(', ', '-')}-{budget}"

    def learn_tokenizer(self) -> Path:
        """One tokenizer for all models, with the vocabulary size of the first model's config."""
        tokenizer = self.folder / "tokenizer.spm"
        if not tokenizer.exists():
            config = CONFIGS / f"{self.models[0].config}.yaml"
            settings = run([self.a.nunchi, "train", config, "--dump-config"]).split("tokenizer:")[1]
            vocabulary = settings.split("vocabulary:")[1].split()[0]
            run([self.a.nunchi, "tokenizer", "train", "--output", tokenizer, "--vocab", vocabulary, "--max-lines", 200000]
                + [word for side in ("en", "de") for word in ("--input", Path(self.a.root) / f"train.en-de.{side}.xz")])
        return tokenizer

    def train(self, model: Model, **options) -> None:
        folder = self.run_folder(model)
        if (folder / "model.safetensors").exists():
            return
        settings = {"data.root": self.a.root, "data.cache": self.folder / "cache", "output": folder,
                    "tokenizer.source": self.learn_tokenizer(), **model.options, **options}
        command = [self.a.nunchi, "train", CONFIGS / f"{model.config}.yaml", *self.device_options, "--overwrite"]
        assignments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        log = run(command + assignments, stderr=True)
        (self.folder / f"{folder.name}.log").write_text(log)
        print(f"trained {model.name}: {last_step(folder):,} steps", file=sys.stderr, flush=True)

    def dev_lengths(self, side: str) -> list[int]:
        text = (Path(self.a.root) / f"dev.en-de.{side}").read_text(encoding="utf-8")
        pieces = run([self.a.nunchi, "tokenizer", "encode", "--ids", self.learn_tokenizer()], input=text)
        return [len(line.split()) + 1 for line in pieces.split("\n")[:-1]]

    def buckets(self, lengths: list[int]) -> list[tuple[str, list[int]]]:
        """(name, line indices) of all lines together, then of each range of lengths."""
        lows = [1] + [limit + 1 for limit in self.limits[:-1]]
        ranges = [(f"{low}-{high}", [i for i, length in enumerate(lengths) if low <= length <= high])
                  for low, high in zip(lows, self.limits)]
        return [("all", sorted(i for _, lines in ranges for i in lines))] + ranges


def last_step(folder: Path) -> int:
    return max(int(checkpoint.name.split("-")[-1]) for checkpoint in (folder / "checkpoints").iterdir())


def parameters(nunchi: str, folder: Path) -> int:
    return figures_of([nunchi, "info", str(folder), "--json"])["parameters"]


def print_table(header: list[str], rows: list[list[str]]) -> None:
    for row in [header, ["---"] * len(header)] + rows:
        print("| " + " | ".join(row) + " |", flush=True)


def bottleneck(a: argparse.Namespace) -> None:
    experiment = Experiment(a, BOTTLENECK_MODELS, BOTTLENECK_LENGTHS)
    for model in experiment.models:  # one after another: each gets the same time and the whole machine
        experiment.train(model, **{"training.max_minutes": a.minutes})
    sources, references = (read_lines(Path(a.root) / f"dev.en-de.{side}") for side in ("en", "de"))
    buckets = experiment.buckets(experiment.dev_lengths("en"))
    rows = []
    for model in experiment.models:
        folder = experiment.run_folder(model)
        text = run([a.nunchi, "translate", folder, *experiment.device_options], input="\n".join(sources) + "\n")
        translations = text.split("\n")
        (experiment.folder / f"{folder.name}.de").write_text("\n".join(translations))
        scores = []
        for _, lines in buckets:
            part, reference = experiment.folder / "part.de", experiment.folder / "truth.de"
            part.write_text("".join(translations[i] + "\n" for i in lines), encoding="utf-8")
            reference.write_text("".join(references[i] + "\n" for i in lines), encoding="utf-8")
            result = figures_of([a.nunchi, "evaluate", str(part), "--reference", str(reference), "--metric", "bleu",
                                 "--json"])
            scores.append(f"{result['bleu']['score']:.2f}")
        rows.append([model.name, f"{parameters(a.nunchi, folder) / 1e6:.1f} M", f"{last_step(folder):,}"] + scores)
    print_table(["model", "parameters", "steps"] + [f"{name} ({len(lines):,})" for name, lines in buckets], rows)


def extrapolation(a: argparse.Namespace) -> None:
    experiment = Experiment(a, EXTRAPOLATION_MODELS, EXTRAPOLATION_LENGTHS)
    experiment.learn_tokenizer()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        list(pool.map(lambda model: experiment.train(model, **{"training.max_steps": a.steps,
                                                         "checkpoints.every": a.steps}), experiment.models))
    source, target = experiment.dev_lengths("en"), experiment.dev_lengths("de")
    buckets = experiment.buckets([max(pair) for pair in zip(source, target)])[1:]
    files = [Path(a.root) / f"dev.en-de.{side}" for side in ("en", "de")]
    rows = []
    for model in experiment.models:
        printed = run([a.nunchi, "score", experiment.run_folder(model), *files, *experiment.device_options])
        scores = [float(line.split("\t")[0]) for line in printed.split("\n")[:-1]]
        rows.append([model.name] + [f"{-sum(scores[i] for i in lines) / sum(target[i] for i in lines):.3f}"
                                    for _, lines in buckets])
    print_table(["position"] + [f"{name} ({len(lines):,})" for name, lines in buckets], rows)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    for name, function in (("bottleneck", bottleneck), ("extrapolation", extrapolation)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--root", required=True, help="folder with train.en-de.{en,de}.xz and dev.en-de.{en,de}")
        command.add_argument("--output", default=f"runs/{name}")
        command.add_argument("--nunchi", default="build/nunchi")
        command.add_argument("--device", default="cpu")
        if name == "bottleneck":
            command.add_argument("--minutes", type=float, default=1.5, help="training time of each model")
        else:
            command.add_argument("--steps", type=int, default=3000, help="training steps of each model")
            command.add_argument("--jobs", type=int, default=1, help="models to train at the same time")
    a = p.parse_args()
    try:
        a.function(a)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
