#!/usr/bin/env python3
"""Runs Nunchi and its peers alternately and prints the ratio of their medians.

    bench/compare.py train --preset base --sentences 128 --length 32 --vocab 32000 --threads 2
    bench/compare.py train --preset gpt2 --sentences 32 --length 1024 --vocab 50304 --precision bf16 --device cuda
    bench/compare.py train --config configs/multi30k-tiny.yaml --set data.root=FOLDER --preset tiny --vocab 8000 \\
        --source FOLDER/train.en --target FOLDER/train.de --tokens 4096 --threads 2
    bench/compare.py rnn --root FOLDER --cell lstm --width 512 --layers 2 --attention dot --threads 2
    bench/compare.py attention --length 16384 --heads 8 --width 64 --threads 2 [--causal]
    bench/compare.py translate --batch 32 --beam 4 --threads 2 [--precision int8]

Each round runs `build/nunchi bench ... --json` and then the peers. The faster variant of a peer counts:
    train      pytorch_train.py, eager and compiled; gpt2 is trained without dropout on both sides
    rnn        pytorch_rnn.py, padded and packed; both sides get the same options, and the text that
               configs/rnn-multi30k.yaml names in --root
    attention  pytorch_attention.py
    translate  ctranslate2_translate.py, with one worker of all threads and with as many workers as threads;
               pytorch_generate.py, in f32 only

With --config, Nunchi trains on the data of the config and the peer on --source and --target: give it the same text,
model, --vocab and --tokens. --python needs PyTorch, torch.compile a C++ compiler, and `translate` also ctranslate2 and
transformers. Nothing else should run on the machine.
"""
import argparse
import json
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PADDED, PACKED = "pytorch padded", "pytorch packed"
EAGER, COMPILED, PYTORCH, NUNCHI = "pytorch eager", "pytorch compiled", "pytorch", "nunchi"
ONE_WORKER, MANY_WORKERS, HUGGING_FACE = "ctranslate2", "ctranslate2 workers", "hugging face"
Figures = dict[str, float]


class Failed(Exception):
    pass


def figures_of(command: list[str]) -> Figures:
    """Runs the command and parses the JSON object that it prints."""
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if run.returncode != 0:
        last_lines = "\n".join(run.stderr.strip().splitlines()[-5:])
        raise Failed(f"{shlex.join(command)}\nended with exit code {run.returncode}:\n{last_lines}")
    try:
        return json.loads(run.stdout[run.stdout.index("{"):])
    except ValueError as error:
        raise Failed(f"{shlex.join(command)}\nprinted no JSON object: {run.stdout[:200]!r}") from error


def flags(**options) -> list[str]:
    """`--name value` for each option. A list repeats the option, True gives only `--name`, None and False nothing."""
    words = []
    for name, value in options.items():
        flag = "--" + name
        for entry in value if isinstance(value, list) else [value]:
            if entry is True:
                words.append(flag)
            elif entry is not None and entry is not False:
                words += [flag, str(entry)]
    return words


def train_commands(a: argparse.Namespace) -> dict[str, list[str]]:
    nunchi = [a.nunchi, "bench", "train"]
    if a.config:
        nunchi += [a.config, *flags(set=a.set)]
    else:
        dropout = 0.0 if a.preset == "gpt2" else None  # like the peer's model
        nunchi += flags(preset=a.preset, sentences=a.sentences, length=a.length, vocab=a.vocab, precision=a.precision,
                        dropout=dropout)
    nunchi += flags(threads=a.threads, device=a.device, json=True) + shlex.split(a.nunchi_options)
    norm = a.norm or ("pre" if a.preset == "tiny" else "post")  # like Nunchi's presets
    peer = [a.python, str(BENCH / "pytorch_train.py")] + flags(
        model=a.preset, batch=a.sentences, length=a.length, vocab=a.vocab, precision=a.precision,
        threads=a.threads, device=a.device, norm=norm, steps=a.peer_steps)
    if a.config:
        peer += flags(source=a.source, target=a.target, tokens=a.tokens)
    return {NUNCHI: nunchi, EAGER: peer, COMPILED: peer + ["--compile"]}


def rnn_commands(a: argparse.Namespace) -> dict[str, list[str]]:
    settings = dict(cell=a.cell, width=a.width, encoder_layers=a.layers, decoder_layers=a.layers, attention=a.attention,
                    dropout=a.dropout)
    values = [f"model.{key}={value}" for key, value in settings.items()] + [
        f"data.root={a.root}", f"tokenizer.vocabulary={a.vocab}", f"training.batch_tokens={a.tokens}",
        "training.batch_by=length", *(a.set or [])]
    nunchi = [a.nunchi, "bench", "train", str(BENCH.parent / "configs" / "rnn-multi30k.yaml"), *flags(set=values)]
    nunchi += flags(threads=a.threads, device=a.device, json=True) + shlex.split(a.nunchi_options)
    peer = [a.python, str(BENCH / "pytorch_rnn.py")] + flags(
        cell=a.cell, width=a.width, layers=a.layers, attention=a.attention, dropout=a.dropout, vocab=a.vocab,
        tokens=a.tokens, threads=a.threads, device=a.device, steps=a.peer_steps,
        source=Path(a.root) / "train.en", target=Path(a.root) / "train.de")
    return {NUNCHI: nunchi, PADDED: peer, PACKED: peer + ["--packed"]}


def attention_commands(a: argparse.Namespace) -> dict[str, list[str]]:
    options = flags(length=a.length, heads=a.heads, width=a.width, causal=a.causal, threads=a.threads)
    return {NUNCHI: [a.nunchi, "bench", "attention", *options, "--json", *shlex.split(a.nunchi_options)],
            PYTORCH: [a.python, str(BENCH / "pytorch_attention.py"), *options]}


def translate_commands(a: argparse.Namespace) -> dict[str, list[str]]:
    lengths = flags(**{"source-length": a.source_length, "target-length": a.target_length, "vocab": a.vocab})
    sentences = max(8, 4 * a.batch)
    nunchi = [a.nunchi, "bench", "translate", "--preset", "base", *lengths, *flags(
        sentences=sentences, batch=a.batch, threads=a.threads, precision=a.precision, json=True), "--beam-size",
        str(a.beam)]
    peer_precision = {"f32": "float32", "int8": "int8"}[a.precision]
    ctranslate2 = [a.python, str(BENCH / "ctranslate2_translate.py"), "--precision", peer_precision, *lengths, *flags(
        sentences=sentences, batch=a.batch, beam=a.beam, threads=a.threads)]
    generate = [a.python, str(BENCH / "pytorch_generate.py"), *lengths, *flags(
        batch=a.batch, beam=a.beam, threads=a.threads)]
    commands = {NUNCHI: nunchi + shlex.split(a.nunchi_options), ONE_WORKER: ctranslate2,
                MANY_WORKERS: ctranslate2 + ["--workers", str(a.threads)]}
    if a.precision == "f32":
        commands[HUGGING_FACE] = generate
    return commands


def run_alternately(commands: dict[str, list[str]], rounds: int, keys: list[str]) -> dict[str, list[Figures]]:
    """Runs the commands in the order A B A B ... A peer that fails is left out from then on."""
    results: dict[str, list[Figures]] = {name: [] for name in commands}
    failed = set()
    for round_number in range(1, rounds + 1):
        for name, command in commands.items():
            if name in failed:
                continue
            try:
                figures = figures_of(command)
            except Failed as problem:
                if name == NUNCHI:
                    raise
                failed.add(name)
                print(f"{name} is left out: {problem}", file=sys.stderr)
                continue
            results[name].append(figures)
            print(f"round {round_number}  {name:17}" + "".join(f"  {key} {figures[key]:,.1f}" for key in keys), flush=True)
    peers = {name: runs for name, runs in results.items() if name != NUNCHI and name not in failed}
    if not peers:
        raise Failed("no peer could be measured.")
    return {NUNCHI: results[NUNCHI], **peers}


def medians(results: dict[str, list[Figures]], keys: list[str]) -> dict[str, Figures]:
    return {name: {key: statistics.median(run[key] for run in runs) for key in keys}
            for name, runs in results.items()}


def compare_train(a: argparse.Namespace):
    if bool(a.config) != bool(a.source and a.target):
        raise Failed("--config needs --source and --target, and the reverse: both sides train on the same text.")
    compare_steps(a, train_commands(a))


def compare_rnn(a: argparse.Namespace):
    compare_steps(a, rnn_commands(a))


def compare_steps(a: argparse.Namespace, commands: dict[str, list[str]]):
    keys = ["target_tokens_per_s", "ms_per_step", "peak_mib"]
    median = medians(run_alternately(commands, a.rounds, keys), keys)
    print(f"\nmedians of {a.rounds}      target tok/s       ms/step    peak MiB")
    for name, figures in median.items():
        print(f"{name:17}" + "".join(f"{figures[key]:14,.1f}" for key in keys[:2]) + f"{figures['peak_mib']:12,.0f}")
    nunchi = median.pop(NUNCHI)
    best = max(median, key=lambda name: median[name]["target_tokens_per_s"])
    print(f"\nspeed   {nunchi['target_tokens_per_s'] / median[best]['target_tokens_per_s']:.2f}x {best}")
    print(f"memory  {nunchi['peak_mib'] / median[best]['peak_mib']:.2f}x {best}")


def compare_attention(a: argparse.Namespace):
    keys = ["forward_ms", "backward_ms", "peak_mib"]
    median = medians(run_alternately(attention_commands(a), a.rounds, keys), keys)
    product = 2 * a.length ** 2 * a.width * a.heads / (2 if a.causal else 1)
    print(f"\nmedians of {a.rounds}      forward ms     GFLOP/s   backward ms     GFLOP/s    peak MiB")
    for name, figures in median.items():
        rates = [products * product / figures[key] / 1e6 for products, key in ((2, "forward_ms"), (5, "backward_ms"))]
        print(f"{name:13}{figures['forward_ms']:14,.1f}{rates[0]:12,.1f}{figures['backward_ms']:14,.1f}"
              f"{rates[1]:12,.1f}{figures['peak_mib']:12,.0f}")
    print()
    for label, key in ("forward ", "forward_ms"), ("backward", "backward_ms"):
        print(f"{label}  {median[PYTORCH][key] / median[NUNCHI][key]:.2f}x as fast as {PYTORCH}")
    print(f"memory    {median[NUNCHI]['peak_mib'] / median[PYTORCH]['peak_mib']:.2f}x {PYTORCH}")


def compare_translate(a: argparse.Namespace):
    keys = ["tokens_per_s", "ms_per_sentence", "peak_mib"]
    median = medians(run_alternately(translate_commands(a), a.rounds, keys), keys)
    print(f"\nmedians of {a.rounds}             tok/s  ms a sentence    peak MiB")
    for name, figures in median.items():
        print(f"{name:20}" + "".join(f"{figures[key]:14,.1f}" for key in keys[:2]) + f"{figures['peak_mib']:12,.0f}")
    nunchi = median.pop(NUNCHI)
    best = max(median, key=lambda name: median[name]["tokens_per_s"])
    print(f"\nspeed   {nunchi['tokens_per_s'] / median[best]['tokens_per_s']:.2f}x {best}")
    print(f"memory  {nunchi['peak_mib'] / median[best]['peak_mib']:.2f}x {best}")


def arguments() -> argparse.Namespace:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--rounds", type=int, default=3)
    common.add_argument("--threads", type=int, default=2)
    common.add_argument("--nunchi", default=str(BENCH.parent / "build" / "nunchi"), help="path of the program")
    common.add_argument("--nunchi-options", default="", metavar="TEXT", help="more options for `nunchi bench`")
    common.add_argument("--python", default=sys.executable, help="a Python with PyTorch")

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    jobs = parser.add_subparsers(required=True, metavar="train|rnn|attention|translate")
    train = jobs.add_parser("train", parents=[common])
    train.set_defaults(compare=compare_train)
    train.add_argument("--preset", default="base", choices=["tiny", "base", "big", "gpt2"])
    train.add_argument("--norm", choices=["post", "pre"], help="norm placement of the peer; default: the preset's")
    train.add_argument("--sentences", type=int, default=128)
    train.add_argument("--length", type=int, default=32)
    train.add_argument("--vocab", type=int, default=32000)
    train.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    train.add_argument("--device", default="cpu")
    train.add_argument("--peer-steps", type=int, help="timed steps of the peer; default: its own")
    train.add_argument("--config", metavar="FILE", help="config of Nunchi, for real text")
    train.add_argument("--set", action="append", metavar="KEY=VALUE", help="changes to the config")
    train.add_argument("--source", metavar="FILE", help="text of the peer, for real text")
    train.add_argument("--target", metavar="FILE")
    train.add_argument("--tokens", type=int, default=4096, help="target tokens per batch of the peer")

    rnn = jobs.add_parser("rnn", parents=[common])
    rnn.set_defaults(compare=compare_rnn)
    rnn.add_argument("--root", required=True, metavar="FOLDER", help="folder with train.en, train.de, val.en and val.de")
    rnn.add_argument("--cell", default="lstm", choices=["gru", "lstm"])
    rnn.add_argument("--width", type=int, default=512)
    rnn.add_argument("--layers", type=int, default=2, help="layers of each stack")
    rnn.add_argument("--attention", default="dot", choices=["none", "additive", "dot"])
    rnn.add_argument("--dropout", type=float, default=0.2)
    rnn.add_argument("--vocab", type=int, default=8000)
    rnn.add_argument("--tokens", type=int, default=4096, help="target tokens per batch")
    rnn.add_argument("--device", default="cpu")
    rnn.add_argument("--set", action="append", metavar="KEY=VALUE", help="more changes to the config of Nunchi")
    rnn.add_argument("--peer-steps", type=int, help="timed steps of the peer; default: its own")

    attention = jobs.add_parser("attention", parents=[common])
    attention.set_defaults(compare=compare_attention)
    attention.add_argument("--length", type=int, default=16384)
    attention.add_argument("--heads", type=int, default=8)
    attention.add_argument("--width", type=int, default=64, help="width of a head")
    attention.add_argument("--causal", action="store_true")

    translate = jobs.add_parser("translate", parents=[common])
    translate.set_defaults(compare=compare_translate)
    translate.add_argument("--batch", type=int, default=32, help="sentences per batch")
    translate.add_argument("--beam", type=int, default=4)
    translate.add_argument("--source-length", type=int, default=24)
    translate.add_argument("--target-length", type=int, default=32)
    translate.add_argument("--vocab", type=int, default=32000)
    translate.add_argument("--precision", default="f32", choices=["f32", "int8"])
    return parser.parse_args()


def main() -> int:
    a = arguments()
    try:
        a.compare(a)
    except Failed as problem:
        print(f"compare.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
