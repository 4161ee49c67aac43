#!/usr/bin/env python3
"""Measures PyTorch's training speed: the peer of `nunchi bench train`. --compile and --precision choose the variant.

    pip install torch numpy          (sentencepiece for --source/--target)
    bench/pytorch_train.py --model base --batch 128 --length 32 --vocab 32000 --threads 2
    bench/pytorch_train.py --model tiny --norm pre --source train.en --target train.de --tokens 4096 --threads 2
    bench/pytorch_train.py --device cuda --precision bf16 --compile --model base --batch 768 --length 32

A step is forward, label-smoothed cross-entropy, backward, gradient clipping, Adam. By default the shapes are fixed:
--batch sentences of --length tokens on both sides. With --source and --target it trains on real text: it learns a joint
BPE; a batch has padded sentences of similar length with at most --tokens real target tokens, and only these count.
Prints one JSON line: target tokens/s, ms per step, peak memory.
"""
import argparse
import json
import os
import random
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
if a.threads:  # must be set before PyTorch is imported
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import torch
from torch import Tensor
from torch.nn import functional as F

from pytorch_models import PAD, SHAPES, Gpt, Transformer
from pytorch_text import measure, real_batches

# source, target, labels, the source's mask, real target tokens
Batch = tuple[Tensor, Tensor, Tensor, Tensor | None, int]


def masked_batches() -> Iterator[Batch]:
    for source, target, labels, count in real_batches(a):
        yield source, target, labels, (source != PAD)[:, None, None, :], count


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
            torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN would make a new plan for every shape

    gpt = a.model == "gpt2"
    model = Gpt(a.vocab, length=a.length) if gpt else Transformer(a.vocab, *SHAPES[a.model], a.norm == "pre")
    model.to(a.device)

    def loss_of(source: Tensor, target: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        with torch.autocast(a.device.split(":")[0], torch.bfloat16, enabled=a.precision == "bf16"):
            logits = model(source, target, mask)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD,
                               label_smoothing=0.0 if gpt else 0.1)

    if a.compile:
        loss_of = torch.compile(loss_of, dynamic=True if a.source else None)
    figures = measure(a, model, loss_of, masked_batches() if a.source else fixed_batches())
    print(json.dumps(dict(
        peer=f"pytorch {torch.__version__}", model=a.model, device=a.device, precision=a.precision,
        compiled=a.compile, threads=a.threads, shape="real text" if a.source else f"{a.batch}x{a.length}",
        vocab=a.vocab, **figures)))


if __name__ == "__main__":
    main()
