#!/usr/bin/env python3
"""usage: make_real.py PROGRAM FOLDER

Trains a small model of every family with the program, for a few seconds in all, and writes the page of each
to FOLDER, as `nunchi inspect --format html` makes it; and one with the checkpoints of a run.
"""
import os
import random
import subprocess
import sys
import tempfile

WORDS = ["고양이는", "침대에서", "잔다", "나무가", "바다를", "본다"]
STACK = "width: 32, heads: 4, feed_forward: 64, dropout: 0.1"
TRAINING = ("training: {batch_tokens: 400, max_steps: 120, log_every: 20, schedule: {learning_rate: 0.003, warmup: 10}}\n"
            "tokenizer: {vocabulary: 48, byte_fallback: false}\n"
            "checkpoints: {every: 20, keep_last: 6}\n")
MODELS = {
    "transformer": "encoder_layers: 2, decoder_layers: 2, " + STACK,
    "t5": "encoder_layers: 2, decoder_layers: 2, " + STACK,
    "rnn": "encoder_layers: 1, decoder_layers: 1, width: 32, attention: additive",
    "gpt": "layers: 2, " + STACK,
    "bert": "layers: 2, " + STACK,
}


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")


def main():
    program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(1)
    sources = [[rng.choice(WORDS) for _ in range(1 + i % 5)] for i in range(200)]
    with tempfile.TemporaryDirectory() as data:
        write(os.path.join(data, "train.x"), (" ".join(words) for words in sources))
        write(os.path.join(data, "train.y"), (" ".join(reversed(words)) for words in sources))
        for name in ("val.x", "val.y"):
            with open(os.path.join(data, name.replace("val", "train")), encoding="utf-8") as file:
                write(os.path.join(data, name), file.read().splitlines()[:20])
        for family, options in MODELS.items():
            pairs = family in ("transformer", "t5", "rnn")
            sides = "{source: %s.x, target: %s.y}" if pairs else "{text: %s.x}"
            part = lambda name: sides % ((name, name) if pairs else name)
            config = os.path.join(data, family + ".yaml")
            write(config, [f"output: {data}/{family}", f"model: {{family: {family}, {options}}}",
                           f"data: {{root: {data}, train: {part('train')}, validation: {part('val')}}}",
                           "validation: {every: 40}", TRAINING])
            run(program, "train", config)
            text = "고양이는 [MASK] 잔다" if family == "bert" else "고양이는 침대에서 잔다"
            beam = [] if family == "bert" else ["--beam-size", "3"]
            run(program, "inspect", f"{data}/{family}", text, "--format", "html", *beam,
                "--output", os.path.join(folder, family + ".html"))
        run(program, "inspect", f"{data}/transformer", "고양이는 침대에서 잔다", "--checkpoints", "--format", "html",
            "--output", os.path.join(folder, "checkpoints.html"))


if __name__ == "__main__":
    main()
