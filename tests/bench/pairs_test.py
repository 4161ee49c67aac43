#!/usr/bin/env python3
"""Runs the scripts that make the pairs of a task as a user would."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent.parent / "bench"


def run(script: str, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(BENCH / script), *map(str, arguments)], capture_output=True,
                          encoding="utf-8")


def pairs_in(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in text.splitlines()]


class TestWithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class SwapWords(TestWithFolder):
    def test_a_missing_file_is_reported_in_one_line(self):
        result = run("swap_words.py", self.folder / "missing.txt")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("missing.txt: No such file", result.stderr)

    def test_a_damaged_archive_is_reported_in_one_line(self):
        (self.folder / "a.xz").write_text("no archive")
        result = run("swap_words.py", self.folder / "a.xz")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)

    def test_a_closed_pipe_is_not_an_error(self):
        (self.folder / "a.txt").write_text("the small dog runs home\n" * 100_000)
        script = f"{sys.executable} {BENCH / 'swap_words.py'} {self.folder / 'a.txt'}"
        result = subprocess.run(f"set -o pipefail; {script} | head -1", shell=True, executable="/bin/bash",
                               capture_output=True, encoding="utf-8")
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.stdout.count("\n"), 1)


class SquadQuestions(TestWithFolder):
    def test_sources_are_answers_with_their_sentences(self):
        result = run("squad_questions.py", HERE / "squad.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(pairs_in(result.stdout), [
            ("Seoul <sep> Namsan is a hill in Seoul.", "Where is Namsan?"),
            ("in 1980 <sep> A tower stands on it; it was finished in 1971 and opened to the public in 1980.",
             "When was the tower opened?"),
            ("worth it? Most visitors say yes <sep> Was it worth it? Most visitors say yes!",
             "What do visitors say about the cost?"),
            ("한강 <sep> 한강이 서울을 지난다.", "서울을 지나는 강은?"),
        ])

    def test_sources_can_contain_the_whole_paragraph(self):
        pairs = pairs_in(run("squad_questions.py", HERE / "squad.json", "--paragraph").stdout)
        self.assertEqual(pairs[0][0], "Seoul <sep> Namsan is a hill in Seoul. A tower stands on it; it was finished in "
                                      "1971 and opened to the public in 1980. Was it worth it? Most visitors say yes!")
        self.assertEqual(pairs[3], ("한강 <sep> 서울은 한국의 수도다. 한강이 서울을 지난다.", "서울을 지나는 강은?"))

    def test_a_wrong_answer_position_is_an_error_without_output(self):
        moved = (HERE / "squad.json").read_text(encoding="utf-8").replace('"answer_start": 98', '"answer_start": 99')
        (self.folder / "moved.json").write_text(moved, encoding="utf-8")
        result = run("squad_questions.py", self.folder / "moved.json")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("question 2: 'in 1980' is not at character 99", result.stderr)

    def test_another_format_is_reported_in_one_line(self):
        for text in ("[]", "{}", '{"data": [{"paragraphs": [{}]}]}'):
            (self.folder / "other.json").write_text(text)
            result = run("squad_questions.py", self.folder / "other.json")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn("is not in SQuAD's format", result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


class FlickrSummaries(TestWithFolder):
    CAPTIONS = ["A", "B b", "C", "D", "E"]

    def setUp(self):
        super().setUp()
        pictures = [f"{part}.jpg" for part in ("train", "dev", "test")]
        (self.folder / "Flickr8k.token.txt").write_text("".join(
            f"{picture}#{number}\t{picture} {caption} \n"
            for picture in pictures for number, caption in enumerate(self.CAPTIONS)))
        for picture in pictures:
            (self.folder / f"Flickr_8k.{picture.removesuffix('.jpg')}Images.txt").write_text(picture + "\n")

    def pairs(self, part: str) -> list[tuple[str, ...]]:
        return pairs_in((self.folder / "out" / f"{part}.tsv").read_text())

    def test_the_summary_is_the_caption_missing_from_the_source(self):
        result = run("flickr_summaries.py", self.folder, "--output", self.folder / "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        for part, count in (("train", 5), ("dev", 1), ("test", 1)):
            whole = sorted(f"{part}.jpg {caption}" for caption in self.CAPTIONS)
            pairs = self.pairs(part)
            self.assertEqual(len({target for _, target in pairs}), count)
            for source, target in pairs:
                others = [f"{part}.jpg{caption}" for caption in source.split(f"{part}.jpg")[1:]]
                self.assertEqual(sorted([target] + [caption.strip() for caption in others]), whole)

    def test_the_same_seed_gives_the_same_pairs(self):
        def pairs_with_seed(seed: int) -> list:
            run("flickr_summaries.py", self.folder, "--output", self.folder / "out", "--seed", seed)
            return [self.pairs(part) for part in ("train", "dev", "test")]

        self.assertEqual(pairs_with_seed(1), pairs_with_seed(1))
        self.assertNotEqual(pairs_with_seed(1), pairs_with_seed(2))

    def test_a_line_without_a_tab_is_reported_by_number(self):
        (self.folder / "Flickr8k.token.txt").write_text("train.jpg#0\tA\ntrain.jpg#1 B\n")
        result = run("flickr_summaries.py", self.folder, "--output", self.folder / "out")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Flickr8k.token.txt:2: no tab", result.stderr)

    def test_a_picture_with_too_few_captions_is_reported_by_name(self):
        (self.folder / "Flickr_8k.devImages.txt").write_text("other.jpg\n")
        token_file = self.folder / "Flickr8k.token.txt"
        for captions in ("", "other.jpg#0\tonly one\n"):
            token_file.write_text(token_file.read_text() + captions)
            result = run("flickr_summaries.py", self.folder, "--output", self.folder / "out")
            self.assertEqual(result.returncode, 1)
            self.assertIn("fewer than two captions of other.jpg", result.stderr)


if __name__ == "__main__":
    unittest.main()
