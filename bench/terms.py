#!/usr/bin/env python3
"""Translates with and without terms: are all terms in the translations, and what do they do to BLEU?

    bench/terms.py PROGRAM MODEL --data FOLDER [--source en] [--target de] [--test test_2016_flickr]
                   [--sentences 200] [--terms 2] [--options='--beam-size 5']

FOLDER has train.en, train.de and the test set TEST.en, TEST.de of Multi30k. A term is a word of the source
with the word of the reference that translates it. Which words translate each other is learned from the
training data by how often they occur in the same pair (Dice's coefficient). The test sentences are the
first ones with at least one such pair; each has up to --terms terms, the likeliest first, as <term> markup.

Prints one JSON object: the terms, how many of them are in the translations without and with --inline-terms,
and both BLEU scores. The exit code is 1 if a term is missing or BLEU falls by more than 0.3.
"""

import argparse
import collections
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

WORD = re.compile(r"\w+")
MIN_COUNT, MIN_DICE, MIN_LENGTH = 5, 0.4, 4


def lines_of(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def dictionary(sources, targets):
    """{source word: {target word: Dice's coefficient}}"""
    pairs, in_source, in_target = (collections.Counter() for _ in range(3))
    for source, target in zip(sources, targets, strict=True):
        left, right = set(WORD.findall(source)), set(WORD.findall(target))
        in_source.update(left)
        in_target.update(right)
        pairs.update((a, b) for a in left for b in right)
    found = collections.defaultdict(dict)
    for (a, b), count in pairs.items():
        dice = 2 * count / (in_source[a] + in_target[b])
        if count >= MIN_COUNT and dice >= MIN_DICE:
            found[a][b] = dice
    return found


def terms_of(source, reference, words, most):
    """[(begin, end, target)] in the order of the source: different words of the reference, which occur once."""
    left, right = list(WORD.finditer(source)), WORD.findall(reference)
    once = {b for b, n in collections.Counter(right).items() if n == 1}
    candidates = sorted(
        ((words[a.group()][b], a.start(), a.end(), b)
         for a in left for b in once
         if len(a.group()) >= MIN_LENGTH and b in words.get(a.group(), {})),
        key=lambda c: (-c[0], c[1]))
    terms, taken = [], set()
    for _, begin, end, target in candidates:
        if begin in taken or target in taken or len(terms) == most:
            continue
        taken |= {begin, target}
        terms.append((begin, end, target))
    return sorted(terms)


def marked(source, terms):
    def escaped(text):
        return html.escape(text, quote=True).replace("&#x27;", "'")
    line, at = "", 0
    for begin, end, target in terms:
        line += escaped(source[at:begin])
        line += f'<term target="{escaped(target)}">{escaped(source[begin:end])}</term>'
        at = end
    return line + escaped(source[at:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--test", default="test_2016_flickr")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--terms", type=int, default=2)
    parser.add_argument("--options", default="")
    arguments = parser.parse_args()

    def read(name, side):
        return lines_of(arguments.data / f"{name}.{side}")

    words = dictionary(read("train", arguments.source), read("train", arguments.target))
    chosen = []
    for source, reference in zip(read(arguments.test, arguments.source),
                                 read(arguments.test, arguments.target), strict=True):
        terms = terms_of(source, reference, words, arguments.terms)
        if terms and len(chosen) < arguments.sentences:
            chosen.append((source, reference, terms))

    def run(*command, text):
        return subprocess.run([arguments.program, *command], input=text, capture_output=True,
                              encoding="utf-8", check=True).stdout

    def present(translations):
        return sum(target in translation for translation, (_, _, terms) in zip(translations, chosen, strict=True)
                   for _, _, target in terms)

    result = {"sentences": len(chosen), "terms": sum(len(terms) for _, _, terms in chosen)}
    with tempfile.TemporaryDirectory() as folder:
        reference = pathlib.Path(folder) / "reference"
        reference.write_text("".join(r + "\n" for _, r, _ in chosen), encoding="utf-8")
        inputs = {"without": [s for s, _, _ in chosen], "with": [marked(s, terms) for s, _, terms in chosen]}
        for name, lines in inputs.items():
            options = arguments.options.split() + (["--inline-terms"] if name == "with" else [])
            out = run("translate", *arguments.models, *options, text="".join(line + "\n" for line in lines))
            file = pathlib.Path(folder) / name
            file.write_text(out, encoding="utf-8")
            result[f"present_{name}"] = present(out.split("\n")[:-1])
            result[f"bleu_{name}"] = json.loads(
                run("evaluate", str(file), "--reference", str(reference), "--json", text=""))["bleu"]["score"]
    print(json.dumps(result))
    all_present = result["present_with"] == result["terms"]
    return 0 if all_present and result["bleu_with"] >= result["bleu_without"] - 0.3 else 1


if __name__ == "__main__":
    sys.exit(main())
