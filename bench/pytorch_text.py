"""Batches of real text, and the timing of training steps: shared by the scripts that train with PyTorch."""
import argparse
import itertools
import random
import resource
import tempfile
import time
from typing import Callable, Iterator

import torch
from torch import Tensor, nn

from pytorch_models import BOS, EOS, PAD

Pair = tuple[list[int], list[int]]


def subword_pairs(a: argparse.Namespace) -> list[Pair]:
    import sentencepiece as spm

    def lines(path: str) -> list[str]:
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\n").split("\n")

    source, target = lines(a.source), lines(a.target)
    with tempfile.TemporaryDirectory() as folder:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(source + target), model_prefix=folder + "/m", vocab_size=a.vocab,
            model_type="bpe", character_coverage=1.0, pad_id=PAD, bos_id=BOS, eos_id=EOS, unk_id=3, minloglevel=2)
        subwords = spm.SentencePieceProcessor(model_file=folder + "/m.model")
    return [(x + [EOS], y) for x, y in zip(subwords.encode(source), subwords.encode(target))
            if 0 < len(x) < 255 and 0 < len(y) < 255]


def padded(rows: list[list[int]], cuda: bool) -> Tensor:
    longest = max(map(len, rows))
    if cuda:  # fewer shapes and aligned attention; no gain on a CPU
        longest = -(-longest // 8) * 8
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def real_batches(a: argparse.Namespace) -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
    """Endless batches of sentences of similar length: source, target and labels, all padded, and the number of real
    target tokens."""
    pairs = subword_pairs(a)
    random.shuffle(pairs)
    pairs.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    groups, group, tokens = [], [], 0
    for pair in pairs:
        if group and tokens + len(pair[1]) + 1 > a.tokens:
            groups.append(group)
            group, tokens = [], 0
        group.append(pair)
        tokens += len(pair[1]) + 1
    random.shuffle(groups)
    cuda = a.device.startswith("cuda")
    for group in itertools.cycle(groups):
        labels = padded([y + [EOS] for _, y in group], cuda)
        yield (padded([x for x, _ in group], cuda), padded([[BOS] + y for _, y in group], cuda), labels,
               int((labels != PAD).sum()))


def measure(a: argparse.Namespace, model: nn.Module, loss_of: Callable[..., Tensor], batches: Iterator) -> dict:
    """Times whole training steps after a.warmup untimed ones. The last entry of a batch is its target token count."""
    cuda = a.device.startswith("cuda")
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    synchronize = torch.cuda.synchronize if cuda else lambda: None
    counts, seconds = [], []
    for step, (*tensors, count) in enumerate(itertools.islice(batches, a.warmup + a.steps)):
        synchronize()
        start = time.perf_counter()
        tensors = [None if t is None else t.to(a.device) for t in tensors]
        adam.zero_grad(set_to_none=True)
        loss_of(*tensors).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        synchronize()
        if step >= a.warmup:
            counts.append(count)
            seconds.append(time.perf_counter() - start)
    rate = sum(counts) / sum(seconds) if a.source else counts[0] / sorted(seconds)[len(seconds) // 2]
    if cuda:
        memory = torch.cuda.max_memory_allocated() // 2 ** 20
    else:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return dict(parameters=sum(p.numel() for p in model.parameters()), target_tokens_per_s=round(rate, 1),
                ms_per_step=round(1000 * sum(seconds) / len(seconds), 2), peak_mib=memory)
