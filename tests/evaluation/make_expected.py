#!/usr/bin/env python3
"""Writes expected.json: sacreBLEU's scores of the texts in fixtures/.

    python tests/evaluation/make_expected.py

Needs sacrebleu[ja,ko] and numpy. tests/evaluation/metrics_test.cpp compares Nunchi's scores with these; every signature
names the version of sacreBLEU.
"""

import json
import logging
import math
import pathlib
import sys

import numpy
import sacrebleu
from sacrebleu import significance
from sacrebleu.metrics import BLEU, CHRF, TER

FOLDER = pathlib.Path(__file__).resolve().parent
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
# normalized, no_punct, asian_support, case_sensitive
TER_OPTIONS = ((False, False, False, False), (True, False, False, True), (False, True, False, False),
               (True, False, True, False), (True, True, True, False), (False, True, True, True))

CASES = {
    "english": ("english.hyp", ["english.ref0"]),
    "english, three references": ("english.hyp", ["english.ref0", "english.ref1", "english.ref2"]),
    "german": ("german.hyp", ["german.ref"]),
    "korean": ("korean.hyp", ["korean.ref"]),
    "greek": ("greek.hyp", ["greek.ref"]),
    "turkish": ("turkish.hyp", ["turkish.ref"]),
    "tricky": ("tricky.hyp", ["tricky.ref"]),
    "tricky, the other way and itself": ("tricky.ref", ["tricky.hyp", "tricky.ref"]),
    "short": ("short.hyp", ["short.ref"]),
    "nothing in common": ("nothing.hyp", ["nothing.ref"]),
    "chinese": ("chinese.hyp", ["chinese.ref"]),
    "shifts": ("shifts.hyp", ["shifts.ref"]),
    "shifts, three references": ("shifts.ref", ["shifts.hyp", "shifts.ref2", "shifts.ref3"]),
}

# Scores with tokenizers that need MeCab.
MECAB_CASES = {
    "japanese": ("ja-mecab", "japanese.hyp", ["japanese.ref"]),
    "korean": ("ko-mecab", "korean.hyp", ["korean.ref"]),
    "tricky in japanese": ("ja-mecab", "tricky.hyp", ["tricky.ref"]),
    "tricky in korean": ("ko-mecab", "tricky.hyp", ["tricky.ref"]),
}


def read_lines(path):
    """Reads a file as sacreBLEU's program does: only a newline ends a line."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


def bleu_of(hypotheses, references, tokenize, lowercase):
    metric = BLEU(tokenize=tokenize, lowercase=lowercase)
    score = metric.corpus_score(hypotheses, references)
    alone = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
    sentences = [alone.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)]
    return {
        "tokenize": tokenize,
        "lowercase": lowercase,
        "score": score.score,
        "signature": str(metric.get_signature()),
        "precisions": score.precisions,
        "brevity_penalty": score.bp,
        "ratio": score.ratio,
        "hypothesis_length": score.sys_len,
        "reference_length": score.ref_len,
        "counts": score.counts,
        "totals": score.totals,
        "details": score._verbose,
        "sentences": sentences,
        "sentence_signature": str(alone.get_signature()),
    }


def chrf_of(hypotheses, references, word_order, lowercase):
    metric = CHRF(word_order=word_order, lowercase=lowercase)
    score = metric.corpus_score(hypotheses, references)
    return {
        "word_order": word_order,
        "lowercase": lowercase,
        "name": score.name,
        "score": score.score,
        "signature": str(metric.get_signature()),
        "sentences": [metric.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)],
    }


def ter_of(hypotheses, references, options):
    names = ("normalized", "no_punct", "asian_support", "case_sensitive")
    metric = TER(**dict(zip(names, options)))
    score = metric.corpus_score(hypotheses, references)
    return {
        **dict(zip(names, options)),
        "score": score.score,
        "signature": str(metric.get_signature()),
        "edits": score.num_edits,
        "reference_length": score.ref_length,
        "sentences": [metric.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)],
    }


def scores_of(hypotheses, references, ter_options=TER_OPTIONS):
    """Every metric, tokenizer and letter case."""
    return {
        "bleu": [bleu_of(hypotheses, references, t, lc) for t in TOKENIZERS for lc in (False, True)],
        "chrf": [chrf_of(hypotheses, references, order, lc) for order in (0, 2) for lc in (False, True)],
        "ter": [ter_of(hypotheses, references, options) for options in ter_options],
    }


def mecab_scores():
    for name, (tokenize, hypothesis, references) in MECAB_CASES.items():
        texts = read_lines(FOLDER / "fixtures" / hypothesis), [read_lines(FOLDER / "fixtures" / r) for r in references]
        yield {"name": name, "hypotheses": hypothesis, "references": references,
               "bleu": [bleu_of(*texts, tokenize, lowercase) for lowercase in (False, True)]}


def paired(system, baseline, references):
    """sacreBLEU's paired bootstrap, which draws with NumPy's generator."""
    metrics = {"BLEU": BLEU(references=references), "CHRF": CHRF(references=references)}
    test = significance.PairedTest(
        [("baseline", baseline), ("system", system)], metrics, references=None, test_type="bs", n_samples=1000)
    _, scores = test()
    result = {}
    for key, name in (("bleu", "BLEU"), ("chrf", "chrF2")):
        of_baseline, of_system = scores[name]
        result[key] = {
            "system": {"score": of_system.score, "mean": float(of_system.mean), "interval": float(of_system.ci)},
            "baseline": {"score": of_baseline.score, "mean": float(of_baseline.mean),
                         "interval": float(of_baseline.ci)},
            "p_value": of_system.p_value,
        }
    return result


def estimates(count):
    """Mean, interval and p-value of made-up resampled scores."""
    system = [30 + 3 * math.sin(12.9898 * i) for i in range(count)]
    baseline = [29.5 + 3 * math.sin(12.9898 * i + 0.4) for i in range(count)]
    mean, interval = significance.estimate_ci(numpy.array(system))
    differences = numpy.abs(numpy.array(system) - numpy.array(baseline))
    return {
        "system": system,
        "baseline": baseline,
        "mean": float(mean),
        "interval": float(interval),
        "difference": 0.5,
        "p_value": significance._compute_p_value(differences - differences.mean(), 0.5),
    }


def main():
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    fixtures = FOLDER / "fixtures"
    cases = []
    for name, (hypothesis, references) in CASES.items():
        # The words of the shifts are lower-case letters, which all options of TER leave alone.
        ter_options = TER_OPTIONS[:1] if name.startswith("shifts") else TER_OPTIONS
        scores = scores_of(read_lines(fixtures / hypothesis), [read_lines(fixtures / r) for r in references],
                           ter_options)
        cases.append({"name": name, "hypotheses": hypothesis, "references": references, **scores})
    english = [read_lines(fixtures / f"english.{name}") for name in ("hyp", "ref0", "ref1", "ref2")]
    expected = {
        "sacrebleu": sacrebleu.__version__,
        "cases": cases,
        "mecab": list(mecab_scores()),
        "paired": paired(english[0], english[1], english[2:]),
        "estimates": [estimates(count) for count in (1, 39, 40, 100)],
    }
    with open(FOLDER / "expected.json", "w", encoding="utf-8") as file:
        json.dump(expected, file, ensure_ascii=False, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
