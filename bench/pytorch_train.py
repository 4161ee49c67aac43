#!/usr/bin/env python3
"""PyTorch's training speed at its best: the peer of `nunchi bench train`.

    pip install torch numpy          (sentencepiece for --source/--target)
    bench/pytorch_train.py --model base --batch 128 --length 32 --vocab 32000 --threads 2
    bench/pytorch_train.py --model tiny --norm pre --source train.en --target train.de --tokens 4096 --threads 2
    bench/pytorch_train.py --device cuda --precision bf16 --compile --model base --batch 768 --length 32

A step is forward, label-smoothed cross-entropy, backward, gradient clipping, Adam. Fixed shapes by
default: --batch sentences of --length tokens on both sides. With --source and --target: real text, a
joint BPE learned here, sentences of similar length together, padded, at most --tokens real target
tokens a batch; only real target tokens count. One JSON line: target tokens/s, ms per step, peak memory.
"""
import argparse
import itertools
import json
import os
import random
import resource
import tempfile
import time
from typing import Iterator


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--model", default="base", choices=["tiny", "base", "big", "gpt2"])
    p.add_argument("--norm", default="post", choices=["post", "pre"])
    p.add_argument("--device", default="cpu")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    p.add_argument("--compile", action="store_true")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--length", type=int, default=32)
    p.add_argument("--vocab", type=int, default=32000)
    p.add_argument("--source")
    p.add_argument("--target")
    p.add_argument("--tokens", type=int, default=4096)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--warmup", type=int, default=3)
    return p.parse_args()


a = arguments()
if a.threads:  # before PyTorch is loaded
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pytorch_models import BOS, EOS, PAD, SHAPES, Gpt, Transformer

# source, target, labels, the source's mask, real target tokens
Batch = tuple[Tensor, Tensor, Tensor, Tensor | None, int]


def subword_pairs() -> list[tuple[list[int], list[int]]]:
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


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    if a.device.startswith("cuda"):  # fewer shapes, aligned attention; on a CPU it only costs
        longest = -(-longest // 8) * 8
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def real_batches() -> Iterator[Batch]:
    pairs = subword_pairs()
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
    for group in groups:
        source = padded([x for x, _ in group])
        target = padded([[BOS] + y for _, y in group])
        labels = padded([y + [EOS] for _, y in group])
        yield source, target, labels, (source != PAD)[:, None, None, :], int((labels != PAD).sum())


def fixed_batches() -> Iterator[Batch]:
    ids = [torch.randint(4, a.vocab, (a.batch, a.length), device=a.device) for _ in range(3)]
    while True:
        yield *ids, None, a.batch * a.length


def main():
    cuda = a.device.startswith("cuda")
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    random.seed(0)
    if cuda:
        torch.set_float32_matmul_precision("high")
        if a.source:
            torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every shape

    gpt = a.model == "gpt2"
    model = Gpt(a.vocab, length=a.length) if gpt else Transformer(a.vocab, *SHAPES[a.model], a.norm == "pre")
    model.to(a.device)
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

    def loss_of(source: Tensor, target: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        with torch.autocast(a.device.split(":")[0], torch.bfloat16, enabled=a.precision == "bf16"):
            logits = model(source, target, mask)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD,
                               label_smoothing=0.0 if gpt else 0.1)

    if a.compile:
        loss_of = torch.compile(loss_of, dynamic=True if a.source else None)
    batches = real_batches() if a.source else fixed_batches()
    synchronize = torch.cuda.synchronize if cuda else lambda: None
    counts, seconds = [], []
    for step, (*tensors, count) in enumerate(itertools.islice(batches, a.warmup + a.steps)):
        synchronize()
        begin = time.perf_counter()
        tensors = [None if t is None else t.to(a.device) for t in tensors]
        adam.zero_grad(set_to_none=True)
        loss_of(*tensors).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        synchronize()
        if step >= a.warmup:
            counts.append(count)
            seconds.append(time.perf_counter() - begin)

    rate = sum(counts) / sum(seconds) if a.source else counts[0] / sorted(seconds)[len(seconds) // 2]
    if cuda:
        memory = torch.cuda.max_memory_allocated() // 2 ** 20
    else:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(dict(
        peer=f"pytorch {torch.__version__}", model=a.model, device=a.device, precision=a.precision,
        compiled=a.compile, threads=a.threads, shape="real text" if a.source else f"{a.batch}x{a.length}",
        vocab=a.vocab, parameters=sum(p.numel() for p in model.parameters()), target_tokens_per_s=round(rate, 1),
        ms_per_step=round(1000 * sum(seconds) / len(seconds), 2), peak_mib=memory)))


if __name__ == "__main__":
    main()
