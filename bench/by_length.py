#!/usr/bin/env python3
"""What a model makes of longer sentences: two experiments on Europarl, trained and drawn up as tables.

    bench/by_length.py bottleneck --root FOLDER [--device cuda] [--minutes 1.5]
    bench/by_length.py extrapolation --root FOLDER [--device cuda] [--steps 3000] [--jobs 4]

`bottleneck` trains a recurrent model without attention, one with attention and a Transformer, all of about as many
parameters and for the same time (configs/bottleneck-*.yaml), and prints BLEU by the source's length. `extrapolation`
trains one Transformer for each kind of position on pairs of at most 20 tokens (configs/extrapolation.yaml) and prints
the loss of pairs by their length, in nats a target token. --root is the folder with train.en-de.{en,de}.xz and
dev.en-de.{en,de}; models, logs and translations go to --output, and a model that is there already is not trained
again. Lengths are in tokens, </s> included.
"""
import argparse
import concurrent.futures
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from compare import Failed, figures_of

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
BOTTLENECK = [15, 30, 60]
EXTRAPOLATION = [20, 30, 40, 60, 100]


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


def run(command: list, told: bool = False, **options) -> str:
    """What the command printed; `told`: what it told on the way, on stderr."""
    done = subprocess.run([str(word) for word in command], text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: {done.stderr.strip()[-500:]}")
    return done.stdout if not told else done.stderr


def read_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


class Experiment:
    def __init__(self, a: argparse.Namespace, models: list[Model], limits: list[int]):
        self.a, self.models, self.limits = a, models, limits
        self.folder = Path(a.output)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.on_device = ["--device", a.device]

    def run_folder(self, model: Model) -> Path:
        """By what it was given, so that another call with more of it trains anew."""
        given = f"{self.a.minutes:g}min" if self.a.command == "bottleneck" else f"{self.a.steps}steps"
        return self.folder / f"{model.name.replace(', ', '-')}-{given}"

    def learn_tokenizer(self) -> Path:
        """One for all models, of the first one's config."""
        tokenizer = self.folder / "tokenizer.spm"
        if not tokenizer.exists():
            config = CONFIGS / f"{self.models[0].config}.yaml"
            wanted = run([self.a.nunchi, "train", config, "--dump-config"]).split("tokenizer:")[1]
            vocabulary = wanted.split("vocabulary:")[1].split()[0]
            run([self.a.nunchi, "tokenizer", "train", "--output", tokenizer, "--vocab", vocabulary, "--max-lines", 200000]
                + [word for side in ("en", "de") for word in ("--input", Path(self.a.root) / f"train.en-de.{side}.xz")])
        return tokenizer

    def train(self, model: Model, **options) -> None:
        folder = self.run_folder(model)
        if (folder / "model.safetensors").exists():
            return
        settings = {"data.root": self.a.root, "data.cache": self.folder / "cache", "output": folder,
                    "tokenizer.source": self.learn_tokenizer(), **model.options, **options}
        command = [self.a.nunchi, "train", CONFIGS / f"{model.config}.yaml", *self.on_device, "--overwrite"]
        settings_given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        log = run(command + settings_given, told=True)
        (self.folder / f"{folder.name}.log").write_text(log)
        print(f"{model.name} is trained: {last_step(folder):,} steps", file=sys.stderr, flush=True)

    def dev_lengths(self, side: str) -> list[int]:
        text = (Path(self.a.root) / f"dev.en-de.{side}").read_text(encoding="utf-8")
        pieces = run([self.a.nunchi, "tokenizer", "encode", "--ids", self.learn_tokenizer()], input=text)
        return [len(line.split()) + 1 for line in pieces.split("\n")[:-1]]

    def buckets(self, lengths: list[int]) -> list[tuple[str, list[int]]]:
        """Lines by length, and all of them first."""
        lows = [1] + [limit + 1 for limit in self.limits[:-1]]
        parts = [(f"{low}-{high}", [i for i, length in enumerate(lengths) if low <= length <= high])
                 for low, high in zip(lows, self.limits)]
        return [("all", sorted(i for _, lines in parts for i in lines))] + parts


def last_step(folder: Path) -> int:
    return max(int(checkpoint.name.split("-")[-1]) for checkpoint in (folder / "checkpoints").iterdir())


def parameters(nunchi: str, folder: Path) -> int:
    return figures_of([nunchi, "info", str(folder), "--json"])["parameters"]


def print_table(heads: list[str], rows: list[list[str]]) -> None:
    for row in [heads, ["---"] * len(heads)] + rows:
        print("| " + " | ".join(row) + " |", flush=True)


def bottleneck(a: argparse.Namespace) -> None:
    work = Experiment(a, BOTTLENECK_MODELS, BOTTLENECK)
    for model in work.models:  # one after another: they are given the same time, and the machine to themselves
        work.train(model, **{"training.max_minutes": a.minutes})
    sources, references = (read_lines(Path(a.root) / f"dev.en-de.{side}") for side in ("en", "de"))
    buckets = work.buckets(work.dev_lengths("en"))
    rows = []
    for model in work.models:
        folder = work.run_folder(model)
        translations = run([a.nunchi, "translate", folder, *work.on_device], input="\n".join(sources) + "\n").split("\n")
        (work.folder / f"{folder.name}.de").write_text("\n".join(translations))
        scores = []
        for _, lines in buckets:
            part, truth = work.folder / "part.de", work.folder / "truth.de"
            part.write_text("".join(translations[i] + "\n" for i in lines), encoding="utf-8")
            truth.write_text("".join(references[i] + "\n" for i in lines), encoding="utf-8")
            result = figures_of([a.nunchi, "evaluate", str(part), "--reference", str(truth), "--metric", "bleu", "--json"])
            scores.append(f"{result['bleu']['score']:.2f}")
        rows.append([model.name, f"{parameters(a.nunchi, folder) / 1e6:.1f} M", f"{last_step(folder):,}"] + scores)
    print_table(["model", "parameters", "steps"] + [f"{name} ({len(lines):,})" for name, lines in buckets], rows)


def extrapolation(a: argparse.Namespace) -> None:
    work = Experiment(a, EXTRAPOLATION_MODELS, EXTRAPOLATION)
    work.learn_tokenizer()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        list(pool.map(lambda model: work.train(model, **{"training.max_steps": a.steps,
                                                         "checkpoints.every": a.steps}), work.models))
    source, target = work.dev_lengths("en"), work.dev_lengths("de")
    buckets = work.buckets([max(pair) for pair in zip(source, target)])[1:]
    files = [Path(a.root) / f"dev.en-de.{side}" for side in ("en", "de")]
    rows = []
    for model in work.models:
        printed = run([a.nunchi, "score", work.run_folder(model), *files, *work.on_device])
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
        command.add_argument("--root", required=True, help="folder of train.en-de.{en,de}.xz and dev.en-de.{en,de}")
        command.add_argument("--output", default=f"runs/{name}")
        command.add_argument("--nunchi", default="build/nunchi")
        command.add_argument("--device", default="cpu")
        if name == "bottleneck":
            command.add_argument("--minutes", type=float, default=1.5, help="of training, for each model")
        else:
            command.add_argument("--steps", type=int, default=3000, help="of training, for each position")
            command.add_argument("--jobs", type=int, default=1, help="models that are trained at once")
    a = p.parse_args()
    try:
        a.function(a)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
