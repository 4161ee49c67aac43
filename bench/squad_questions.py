#!/usr/bin/env python3
"""Makes pairs for question generation from a file in SQuAD's format: an answer with its sentence, and the question.

    bench/squad_questions.py train-v1.1.json > train.tsv
    bench/squad_questions.py train-v1.1.json --paragraph > train.tsv      with the whole paragraph

A line is `answer <sep> context`, a tab, `question`. Questions without an answer (SQuAD 2.0) are left out. If a
question has several answers, the first one is used.
"""
import argparse
import json
import re
import sys
from typing import Iterator

SEPARATOR = "<sep>"


def sentence_around(paragraph: str, begin: int, end: int) -> str:
    """The sentence or sentences that contain paragraph[begin:end]."""
    breaks = [0] + [found.end() for found in re.finditer(r"[.!?]['\")\]]*\s+", paragraph)] + [len(paragraph)]
    first = max(position for position in breaks if position <= begin)
    last = min(position for position in breaks if position >= end)
    return paragraph[first:last]


def one_line(text: str) -> str:
    return " ".join(text.split())


def pairs_of(data: dict, whole_paragraph: bool) -> Iterator[tuple[str, str]]:
    for paragraph in (paragraph for article in data["data"] for paragraph in article["paragraphs"]):
        context = paragraph["context"]
        for question in paragraph["qas"]:
            if not question["answers"]:
                continue
            answer, begin = question["answers"][0]["text"], question["answers"][0]["answer_start"]
            if not answer or context[begin:begin + len(answer)] != answer:
                raise ValueError(f"question {question['id']}: '{answer}' is not at character {begin} of its context")
            around = context if whole_paragraph else sentence_around(context, begin, begin + len(answer))
            yield f"{one_line(answer)} {SEPARATOR} {one_line(around)}", one_line(question["question"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("json")
    parser.add_argument("--paragraph", action="store_true", help="use the whole paragraph instead of the answer's sentence")
    arguments = parser.parse_args()
    try:
        with open(arguments.json, encoding="utf-8") as file:
            pairs = list(pairs_of(json.load(file), arguments.paragraph))
    except (OSError, ValueError) as problem:
        print(f"squad_questions.py: {arguments.json}: {problem}", file=sys.stderr)
        return 1
    except (KeyError, TypeError) as problem:
        print(f"squad_questions.py: {arguments.json} is not in SQuAD's format: {problem}", file=sys.stderr)
        return 1
    sys.stdout.reconfigure(encoding="utf-8")
    for source, target in pairs:
        sys.stdout.write(f"{source}\t{target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
