#!/usr/bin/env python3
"""Trains an encoder-decoder of PyTorch's nn.GRU or nn.LSTM: the peer of `nunchi bench train` for the family rnn.

    pip install torch numpy          (sentencepiece for --source/--target)
    bench/pytorch_rnn.py --cell lstm --width 512 --layers 2 --attention dot --batch 128 --length 32 --threads 2
    bench/pytorch_rnn.py --source train.en --target train.de --vocab 8000 --tokens 4096 --threads 2 [--packed]

The model is the same as Nunchi's: tied embeddings, a bidirectional encoder with half of the width for each direction
(--one-way: unidirectional), whose last states are the decoder's initial states, attention after the recurrent layers,
dropout. A batch has sentences of similar length. They are padded, as PyTorch's fused layers require, or packed
(--packed), without padding and without the fused layers. With padding, the last states have read padding tokens too,
so only the speed is meaningful. Prints one JSON line like pytorch_train.py.
"""
import argparse
import json
import os
import random


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--cell", default="gru", choices=["gru", "lstm"])
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--layers", type=int, default=2, help="layers of each stack")
    p.add_argument("--one-way", action="store_true")
    p.add_argument("--attention", default="dot", choices=["none", "additive", "dot"])
    p.add_argument("--dropout", type=float, default=0.2)
    p.add_argument("--packed", action="store_true")
    p.add_argument("--device", default="cpu")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--length", type=int, default=32)
    p.add_argument("--vocab", type=int, default=8000)
    p.add_argument("--source")
    p.add_argument("--target")
    p.add_argument("--tokens", type=int, default=4096)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--warmup", type=int, default=3)
    return p.parse_args()


a = arguments()
if a.threads:  # must be set before PyTorch is imported
    os.environ["OMP_NUM_THREADS"] = str(a.threads)

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pytorch_models import PAD
from pytorch_text import measure, real_batches


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        C, directions = a.width, 1 if a.one_way else 2
        kind = nn.LSTM if a.cell == "lstm" else nn.GRU
        options = dict(num_layers=a.layers, batch_first=True, dropout=a.dropout if a.layers > 1 else 0.0)
        self.table = nn.Embedding(a.vocab, C)
        nn.init.normal_(self.table.weight, std=C ** -0.5)
        self.encoder = kind(C, C // directions, bidirectional=not a.one_way, **options)
        self.decoder = kind(C, C, **options)
        self.dropout = nn.Dropout(a.dropout)
        if a.attention == "additive":
            self.query, self.key = nn.Linear(C, C, bias=False), nn.Linear(C, C, bias=False)
            self.scorer = nn.Linear(C, 1, bias=False)
        if a.attention != "none":
            self.join = nn.Linear(2 * C, C)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.table(ids) * a.width ** 0.5)

    def recur(self, layers: nn.Module, x: Tensor, lengths: Tensor | None, initial=None):
        if lengths is None:
            return layers(x, initial)
        packed, last = layers(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False), initial)
        return pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])[0], last

    def attend(self, hidden: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        if a.attention == "dot":
            scores = hidden @ memory.transpose(1, 2)
        else:
            scores = self.scorer(torch.tanh(self.query(hidden)[:, :, None] + self.key(memory)[:, None])).squeeze(-1)
        context = scores.masked_fill(~real[:, None], float("-inf")).softmax(-1) @ memory
        return torch.tanh(self.join(torch.cat([context, hidden], -1)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real, real_target = source != PAD, target != PAD
        lengths = [m.sum(1).cpu() if a.packed else None for m in (real, real_target)]
        memory, last = self.recur(self.encoder, self.embed(source), lengths[0])

        def join_directions(state: Tensor) -> Tensor:  # [layers · directions, B, H] → [layers, B, C]
            return state.unflatten(0, (a.layers, -1)).transpose(1, 2).flatten(2).contiguous()

        initial = tuple(map(join_directions, last)) if a.cell == "lstm" else join_directions(last)
        hidden, _ = self.recur(self.decoder, self.embed(target), lengths[1], initial)
        if a.attention != "none":
            hidden = self.attend(hidden, memory, real)
        # Only real tokens are projected to the vocabulary.
        return F.linear(self.dropout(hidden[real_target]), self.table.weight)


def fixed_batches():
    ids = [torch.randint(4, a.vocab, (a.batch, a.length), device=a.device) for _ in range(3)]
    while True:
        yield *ids, a.batch * a.length


def main():
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    random.seed(0)
    model = Rnn().to(a.device)

    def loss_of(source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast(a.device.split(":")[0], torch.bfloat16, enabled=a.precision == "bf16"):
            logits = model(source, target)
        return F.cross_entropy(logits.float(), labels[target != PAD], label_smoothing=0.1)

    figures = measure(a, model, loss_of, real_batches(a) if a.source else fixed_batches())
    print(json.dumps(dict(
        peer=f"pytorch {torch.__version__}", model="rnn", cell=a.cell, attention=a.attention, packed=a.packed,
        device=a.device, precision=a.precision, threads=a.threads,
        shape="real text" if a.source else f"{a.batch}x{a.length}", vocab=a.vocab, **figures)))


if __name__ == "__main__":
    main()
