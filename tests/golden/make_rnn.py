#!/usr/bin/env python3
"""Computes small recurrent encoder-decoders with PyTorch's nn.GRU and nn.LSTM and writes golden files.

    pip install torch numpy
    python3 tests/golden/make_rnn.py                 writes rnn_*.safetensors beside this script

make_golden.py describes the files; batches, losses and optimisers are the same. The parameters have Nunchi's
names, and the input weights of both directions are concatenated.
"""
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from make_golden import (SOURCE_LENGTHS, TARGET_LENGTHS, check_padding, draw_batch, draw_parameters, train,
                         write_safetensors)


@dataclass
class Config:
    """The keys of config.json, in its order."""

    family: str = "rnn"
    source_vocabulary: int = 23
    target_vocabulary: int = 23
    cell: str = "gru"
    encoder_layers: int = 2
    decoder_layers: int = 2
    width: int = 14
    bidirectional: bool = True
    attention: str = "dot"
    tied_embeddings: str = "all"
    dropout: float = 0.0
    free_running: float = 0.0


FIXTURES = dict(
    rnn_gru_dot=Config(),
    rnn_lstm_dot=Config(cell="lstm", encoder_layers=1, bidirectional=False, tied_embeddings="none",
                        source_vocabulary=29),
    rnn_gru_additive=Config(attention="additive", decoder_layers=1, bidirectional=False),
    rnn_lstm_additive=Config(cell="lstm", attention="additive", tied_embeddings="target", source_vocabulary=29),
    rnn_gru_none=Config(attention="none", encoder_layers=1, bidirectional=False, width=13),
    rnn_lstm_none=Config(cell="lstm", attention="none"))


class Stack(nn.Module):
    def __init__(self, config: Config, layers: int, bidirectional: bool):
        super().__init__()
        kind = nn.LSTM if config.cell == "lstm" else nn.GRU
        width = config.width // 2 if bidirectional else config.width
        self.layers = nn.ModuleList(kind(config.width, width, batch_first=True, bidirectional=bidirectional)
                                    for _ in range(layers))


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        C = config.width
        if config.attention == "additive":
            self.query, self.key = nn.Linear(C, C, bias=False), nn.Linear(C, C, bias=False)
            self.scorer = nn.Parameter(torch.empty(C))
        self.context, self.hidden = nn.Linear(C, C, bias=False), nn.Linear(C, C, bias=False)
        self.bias = nn.Parameter(torch.empty(C))

    def forward(self, hidden: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """hidden [B, T, C], memory [B, S, C], mask [B, S]: true where a state is real."""
        if hasattr(self, "scorer"):  # Bahdanau's score
            scores = torch.tanh(self.query(hidden)[:, :, None] + self.key(memory)[:, None]) @ self.scorer
        else:  # Luong's
            scores = hidden @ memory.transpose(1, 2)
        weights = torch.softmax(scores.masked_fill(~mask[:, None], -math.inf), dim=-1)
        return torch.tanh(self.context(weights @ memory) + self.hidden(hidden) + self.bias)


class Rnn(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.encoder = Stack(config, config.encoder_layers, config.bidirectional)
        self.decoder = Stack(config, config.decoder_layers, False)
        if config.attention != "none":
            self.decoder.attention = Attention(config)
        if config.tied_embeddings == "all":
            self.shared = nn.Module()
            self.shared.embedding = nn.Embedding(config.source_vocabulary, config.width)
        else:
            self.encoder.embedding = nn.Embedding(config.source_vocabulary, config.width)
            self.decoder.embedding = nn.Embedding(config.target_vocabulary, config.width)
        if config.tied_embeddings == "none":
            self.decoder.output = nn.Linear(config.width, config.target_vocabulary, bias=False)

    def table(self, stack: Stack) -> nn.Embedding:
        return self.shared.embedding if self.config.tied_embeddings == "all" else stack.embedding

    def embed(self, stack: Stack, ids: Tensor) -> Tensor:
        return self.table(stack)(ids) * math.sqrt(self.config.width)

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, list]:
        """The states [B, S, C], and the last state of each layer."""
        x, last = self.embed(self.encoder, source), []
        for layer in self.encoder.layers:
            packed, state = layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
            x, _ = pad_packed_sequence(packed, batch_first=True, total_length=source.shape[1])
            states = state if self.config.cell == "lstm" else (state,)
            # [directions, B, H] → [1, B, C]
            last.append(tuple(torch.cat(list(s), dim=-1)[None].contiguous() for s in states))
        return x, last

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encode(source, source_mask.sum(1))
        x = self.embed(self.decoder, target)
        for i, layer in enumerate(self.decoder.layers):
            initial = last[max(0, i + self.config.encoder_layers - self.config.decoder_layers)]
            x, _ = layer(x, initial if self.config.cell == "lstm" else initial[0])
        if self.config.attention != "none":
            x = self.decoder.attention(x, memory, source_mask)
        if self.config.tied_embeddings == "none":
            return self.decoder.output(x)
        return x @ self.table(self.decoder).weight.T


def with_nunchi_names(parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {}
    for name, tensor in parameters.items():
        stem, _, last = name.rpartition(".")
        if "_l0" not in last:
            named[name] = tensor
            continue
        kind = last.split("_")[0]  # weight or bias
        if last.endswith("_reverse"):
            if "_hh_" in last:
                named[f"{stem}.hidden_reverse.{kind}"] = tensor
        elif "_hh_" in last:
            named[f"{stem}.hidden.{kind}"] = tensor
        else:
            both = [parameters[key] for key in (name, name + "_reverse") if key in parameters]
            named[f"{stem}.input.{kind}"] = torch.cat(both)
    return named


def make_fixture(config: Config) -> dict[str, Tensor]:
    rng = np.random.default_rng(2014)
    model = Rnn(config)
    draw_parameters(model, rng)
    batch = draw_batch(config, (SOURCE_LENGTHS, TARGET_LENGTHS), rng)
    logits = batch.logits(model)
    check_padding(model, batch, logits)
    loss = batch.loss(logits)
    loss.backward()
    fixture = dict(logits=logits, token_losses=batch.loss(logits, "none"), loss=loss.reshape(1),
                   losses=train(model, batch, 10, "adam"), adamw_losses=train(model, batch, 10, "adamw"))
    parameters = dict(model.named_parameters())
    for name, tensor in with_nunchi_names(parameters).items():
        fixture["parameters/" + name] = tensor
    for name, tensor in with_nunchi_names({name: p.grad for name, p in parameters.items()}).items():
        fixture["gradients/" + name] = tensor
    for side, sentences in ("source", batch.sources), ("target", batch.targets):
        fixture[side + "_ids"] = torch.tensor(sum(sentences, []), dtype=torch.int32)
        fixture[side + "_lengths"] = torch.tensor([len(s) for s in sentences], dtype=torch.int32)
    return fixture


def main():
    torch.set_num_threads(1)  # the bits of a sum depend on the number of threads
    for name, config in FIXTURES.items():
        path = Path(__file__).parent / f"{name}.safetensors"
        fixture = make_fixture(config)
        metadata = {"config": json.dumps(asdict(config), indent=2) + "\n", "torch": torch.__version__}
        write_safetensors(path, fixture, metadata)
        losses = fixture["losses"].tolist()
        print(f"{path}: {path.stat().st_size:,} bytes, loss {losses[0]:.3f} to {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
