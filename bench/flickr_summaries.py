#!/usr/bin/env python3
"""Makes pairs for a small summarisation task: the source is four captions of a picture, the target the fifth.

    bench/flickr_summaries.py FOLDER --output summaries      writes train.tsv, dev.tsv and test.tsv

FOLDER holds Flickr8k.token.txt (`name#n`, a tab, a caption) and the lists Flickr_8k.{train,dev,test}Images.txt. In
training, each caption of a picture is the target once. In dev and test, one caption is drawn at random as the target.
The other captions are shuffled: in the file they are often sorted, which would give the missing caption away.
"""
import argparse
import random
import sys
from collections import defaultdict
from pathlib import Path


def captions_of(file: Path) -> dict[str, list[str]]:
    captions = defaultdict(list)
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            name, tab, caption = line.partition("\t")
            if not tab:
                raise ValueError(f"{file}:{number}: no tab between the picture's name and its caption")
            captions[name.rpartition("#")[0]].append(" ".join(caption.split()))
    return captions


def pairs_of(captions: list[str], every: bool, rng: random.Random) -> list[tuple[str, str]]:
    """(source, target) with every caption as the target once, or with one random caption as the target."""
    pairs = []
    for target in range(len(captions)) if every else [rng.randrange(len(captions))]:
        others = captions[:target] + captions[target + 1:]
        rng.shuffle(others)
        pairs.append((" ".join(others), captions[target]))
    return pairs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("."), help="folder to write the three files to")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        captions = captions_of(arguments.folder / "Flickr8k.token.txt")
        arguments.output.mkdir(parents=True, exist_ok=True)
        for part in ("train", "dev", "test"):
            rng = random.Random(f"{arguments.seed} {part}")
            names = (arguments.folder / f"Flickr_8k.{part}Images.txt").read_text(encoding="utf-8").split()
            for name in names:
                if len(captions.get(name, [])) < 2:
                    raise ValueError(f"Flickr8k.token.txt has fewer than two captions of {name}")
            pairs = [pair for name in names for pair in pairs_of(captions[name], part == "train", rng)]
            lines = [f"{source}\t{target}\n" for source, target in pairs]
            (arguments.output / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
            print(f"{arguments.output / part}.tsv: {len(lines):,} pairs of {len(names):,} pictures", file=sys.stderr)
    except (OSError, ValueError) as problem:
        print(f"flickr_summaries.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
