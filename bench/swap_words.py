#!/usr/bin/env python3
"""Makes lines for a classification task that needs grammar: untouched, or with two neighbouring words swapped.

    bench/swap_words.py TEXT > swapped.tsv           TEXT may be plain, .gz or .xz
    bench/swap_words.py TEXT --lines 600000 --seed 2

Each line that has a pair of words to swap gives one line: the text, a tab and the label. Both labels are equally
likely. Only lower-case words are swapped, so that neither capitals nor punctuation reveal the label.
"""
import argparse
import gzip
import lzma
import os
import random
import sys
import zlib


def open_text(path: str):
    openers = {".gz": gzip.open, ".xz": lzma.open}
    opener = next((openers[end] for end in openers if path.endswith(end)), open)
    return opener(path, "rt", encoding="utf-8", errors="replace")


def swap_positions(words: list[str]) -> list[int]:
    def plain(word: str) -> bool:
        return word.isalpha() and word.islower()

    return [i for i in range(len(words) - 1)
            if plain(words[i]) and plain(words[i + 1]) and words[i] != words[i + 1]]


def swap_lines(arguments):
    rng = random.Random(arguments.seed)
    written = 0
    with open_text(arguments.text) as text:
        for line in text:
            words = line.split()
            positions = swap_positions(words)
            if not positions:
                continue
            label = rng.choice(["swapped", "untouched"])
            if label == "swapped":
                i = rng.choice(positions)
                words[i], words[i + 1] = words[i + 1], words[i]
            sys.stdout.write(" ".join(words) + "\t" + label + "\n")
            written += 1
            if written == arguments.lines:
                break
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--lines", type=int, default=0, help="maximum number of lines to write; 0: no limit")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        swap_lines(arguments)
    except BrokenPipeError:
        # The reader closed the pipe. Discard the buffered output, or Python would report the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        sys.exit(f"swap_words.py: cannot read {arguments.text}: {reason}.")


if __name__ == "__main__":
    main()
