#!/usr/bin/env python3
"""Checks that two builds of Nunchi compute the same results on the CPU, to the bit.

    bench/compare_builds.py OLD NEW --data FOLDER [--only NAME,…] [--steps 50] [--threads 1] [--keep FOLDER]

OLD and NEW are programs. FOLDER has train.en, train.de, val.en and val.de of Multi30k. Both programs train each
family for a few steps. The script compares their weights byte by byte, then the output of the commands that
use the model. The exit code is 1 if anything differs.

With --keep, the results of the old program are kept in that folder and reused until the program changes.
"""

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

TRAIN_LINES, INPUT_LINES = 2000, 30

COMMON = """
seed: 7
data: {{root: {data}, {data_keys}}}
training:
  batch_tokens: 600
  max_steps: {steps}
  {training_keys}
  schedule: {{kind: linear, learning_rate: 3.0e-3, warmup: 10}}
checkpoints: {{every: {steps}, keep_last: 1, average: 1}}
"""
PAIRS = "train: {source: train.en, target: train.de}, validation: {source: val.en, target: val.de}"
TEXT = "train: {text: train.en}, validation: {text: val.en}"
LABELLED = "train: {tsv: labelled.tsv}"
BPE = "tokenizer: {kind: bpe, vocabulary: 600, shared: true}\n"
SHAPE = "width: 64, heads: 4, feed_forward: 96, dropout: 0.1, attention_dropout: 0.1"
LAYERS = "encoder_layers: 2, decoder_layers: 2"

TRANSLATE = [
    "translate MODEL --input val.en --beam-size 4 --n-best 2 --word-scores --alignment",
    "translate MODEL --input val.en --beam-size 1 --max-length 20 --no-repeat-ngram 2 --min-length 5",
    "translate MODEL --input val.en --sample --top-k 8 --top-p 0.9 --temperature 0.8 --seed 3 --n-best 2",
    "score MODEL val.en val.de",
]
GENERATE = [
    "generate MODEL --input val.en --max-tokens 20 --sample --top-k 5 --seed 3",
    "generate MODEL --input val.en --max-tokens 20 --beam-size 3",
    "score MODEL val.en",
]
SYMBOLS = "[" + ", ".join(f"<extra_id_{i}>" for i in range(8)) + "]"


def family(model, data=PAIRS, training="", tokenizer=BPE, commands=()):
    return {"model": model, "data": data, "training": training, "tokenizer": tokenizer,
            "commands": commands}


def families():
    """The variants of each family that run different code, by name."""
    variants = {
        "transformer-post": family(f"family: transformer, {SHAPE}, {LAYERS}", commands=TRANSLATE),
        "transformer-pre": family(
            f"family: transformer, {SHAPE}, {LAYERS}, norm_placement: pre, norm: rms, activation: swiglu, kv_heads: 2",
            training="label_smoothing: 0.1", commands=TRANSLATE),
        "t5": family(f"family: t5, {SHAPE}, {LAYERS}, head_width: 16", commands=TRANSLATE),
        "t5-spans": family(
            f"family: t5, {SHAPE}, {LAYERS}, head_width: 16", TEXT, "objective: span_corruption",
            f"tokenizer: {{kind: bpe, vocabulary: 600, shared: true, symbols: {SYMBOLS}}}\n", TRANSLATE[:1]),
        "gpt": family(f"family: gpt, layers: 2, max_positions: 128, {SHAPE}", TEXT,
                      tokenizer="tokenizer: {kind: characters}\n", commands=GENERATE),
        "gpt-rotary": family(f"family: gpt, layers: 2, position: rotary, {SHAPE}", TEXT,
                             tokenizer="tokenizer: {kind: bpe, vocabulary: 600}\n", commands=GENERATE),
        "bert": family(f"family: bert, layers: 2, max_positions: 128, {SHAPE}", TEXT, "objective: masked",
                       "tokenizer: {kind: bpe, vocabulary: 600}\n",
                       ["fill MODEL --input masked.txt", "embed MODEL --input val.en"]),
        "bert-labels": family(f"family: bert, layers: 2, max_positions: 128, {SHAPE}", LABELLED,
                              "objective: classification", "tokenizer: {kind: bpe, vocabulary: 600}\n",
                              ["classify MODEL --input val.en"]),
    }
    for position in ("learned", "rotary", "relative", "alibi", "none"):
        variants[f"transformer-{position}"] = family(
            f"family: transformer, {SHAPE}, {LAYERS}, position: {position}", commands=TRANSLATE[:1])
    for cell, attention in itertools.product(("gru", "lstm"), ("none", "additive", "dot")):
        free = 0.3 if attention == "dot" else 0
        variants[f"rnn-{cell}-{attention}"] = family(
            f"family: rnn, cell: {cell}, attention: {attention}, width: 64, dropout: 0.1, free_running: {free},"
            " encoder_layers: 2, decoder_layers: 2", commands=TRANSLATE[attention == "none":])  # without attention, no alignment
    return variants


def tensors(path):
    """The tensors of a safetensors file: name → [type, shape, digest of the bytes]."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    return {name: [entry["dtype"], entry["shape"],
                   hashlib.sha256(body[slice(*entry["data_offsets"])]).hexdigest()]
            for name, entry in header.items() if name != "__metadata__"}


def prepare(source, folder):
    """Writes the small corpus that both programs train on."""
    for name, lines in (("train.en", TRAIN_LINES), ("train.de", TRAIN_LINES), ("val.en", INPUT_LINES),
                        ("val.de", INPUT_LINES)):
        text = (source / name).read_text(encoding="utf-8").splitlines()[:lines]
        (folder / name).write_text("\n".join(text) + "\n", encoding="utf-8")
    english = (folder / "train.en").read_text(encoding="utf-8").splitlines()
    labels = (f"{line}\t{'long' if len(line) > 60 else 'short'}" for line in english[:600])
    (folder / "labelled.tsv").write_text("\n".join(labels) + "\n", encoding="utf-8")
    masked = (" ".join(["[MASK]" if i == 2 else word for i, word in enumerate(line.split())])
              for line in english[:INPUT_LINES])
    (folder / "masked.txt").write_text("\n".join(masked) + "\n", encoding="utf-8")


def call(program, arguments, folder):
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "NO_COLOR": "1"}
    done = subprocess.run([program, *arguments], cwd=folder, env=environment, capture_output=True)
    if done.returncode != 0:
        last_lines = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        return {"failed": f"{' '.join(arguments)}: " + " / ".join(last_lines)}
    return {"output": hashlib.sha256(done.stdout).hexdigest(), "text": done.stdout.decode(errors="replace")[:4000]}


def results_of(program, variant, options):
    threads = ["--threads", str(options.threads)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        prepare(options.data, folder)
        common = COMMON.format(data=folder, data_keys=variant["data"], training_keys=variant["training"] or "accumulate: 1",
                               steps=options.steps)
        config = f"output: {folder}/run\nmodel: {{{variant['model']}}}\n{variant['tokenizer']}{common}"
        (folder / "config.yaml").write_text(config)
        trained = call(program, ["train", "config.yaml", *threads], folder)
        if "failed" in trained:
            return {"failed": trained["failed"]}
        results = {"weights": tensors(folder / f"run/checkpoints/step-{options.steps}/model.safetensors")}
        for command in variant["commands"]:
            arguments = [str(folder / "run") if word == "MODEL" else word for word in command.split()]
            results[command] = call(program, [*arguments, *threads], folder)
        return results


def kept_results(program, name, variant, options):
    """Like results_of(), but reuses the results in --keep if the same program made them."""
    if not options.keep:
        return results_of(program, variant, options)
    key = hashlib.sha256(json.dumps([variant, options.steps, options.threads, str(program),
                                     os.stat(program).st_mtime_ns]).encode())
    path = options.keep / f"{name}-{key.hexdigest()[:16]}.json"
    if not path.exists():
        options.keep.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results_of(program, variant, options)))
    return json.loads(path.read_text())


def differences(old, new):
    """A phrase for each difference."""
    for side, results in (("the old program", old), ("the new program", new)):
        if "failed" in results:
            return [f"{side} failed: {results['failed']}"]
    phrases = []
    if old["weights"] != new["weights"]:
        changed = [k for k in old["weights"] | new["weights"] if old["weights"].get(k) != new["weights"].get(k)]
        phrases.append(f"weights differ in {len(changed)} of {len(old['weights'])} tensors, first in {changed[0]}")
    for command in old.keys() - {"weights"}:
        if "failed" in old[command] or "failed" in new[command]:
            phrases.append(f"{command}: {old[command].get('failed', 'the old program works')}; "
                           f"{new[command].get('failed', 'the new program works')}")
        elif old[command]["output"] != new[command]["output"]:
            pairs = zip(old[command]["text"].splitlines(), new[command]["text"].splitlines())
            first = next((f": '{a}' became '{b}'" for a, b in pairs if a != b), "")
            phrases.append(f"{command} differs{first}")
    return phrases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="names of variants, separated by commas")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    options.old, options.new = options.old.resolve(), options.new.resolve()
    wanted = [name for name in options.only.split(",") if name]
    different = 0
    for name, variant in families().items():
        if wanted and name not in wanted:
            continue
        phrases = differences(kept_results(options.old, name, variant, options),
                              results_of(options.new, variant, options))
        different += bool(phrases)
        print(f"{name:20} {'; '.join(phrases) if phrases else 'same bits'}", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
