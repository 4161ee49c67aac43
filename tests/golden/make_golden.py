#!/usr/bin/env python3
"""Computes small Transformers with PyTorch and writes the golden files that the C++ tests compare with.

    pip install torch numpy
    python3 tests/golden/make_golden.py                 writes *.safetensors beside this script
    python3 tests/golden/make_golden.py --base FOLDER   writes FOLDER/base.safetensors (400 MB)

The model below is written to be obviously right, not fast: padded batches, masks, a softmax over all
scores. Parameters are drawn and rounded to f32, so that both sides start from the same numbers;
everything else is computed in f64 and stored as f32. Running it again gives the same bytes.

A file holds these tensors. T is the total number of target rows: a target y has one row more than
tokens, for <s>.

    parameters/NAME
    gradients/NAME                    of the summed loss
    source_ids, source_lengths        i32, one sentence after another, with the final </s>
    target_ids, target_lengths        i32, one sentence after another, without <s> and </s>
    logits [T, V], token_losses [T]   the real rows, one sentence after another
    loss [1]                          the sum of token_losses; label smoothing 0.1, no dropout
    losses [N]                        the summed loss before each of N steps of Adam, clipping at 1
    adamw_losses [N]                  the same with AdamW from the same parameters: decay of matrices, no clipping

and the metadata "config" (the text of the model's config.json) and "torch" (PyTorch's version).
"""
import argparse
import copy
import json
import math
import struct
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

BOS, EOS, FIRST_WORD = 1, 2, 3
SMOOTHING = 0.1


@dataclass
class Config:
    """The keys of config.json, in its order, with the paper's base model as defaults."""

    family: str = "transformer"
    source_vocabulary: int = 37000
    target_vocabulary: int = 37000
    encoder_layers: int = 6
    decoder_layers: int = 6
    width: int = 512
    heads: int = 8
    feed_forward: int = 2048
    norm_placement: str = "post"
    norm: str = "layer"
    activation: str = "relu"
    kv_heads: int = 0
    head_width: int = 0
    bias: bool = True
    norm_epsilon: float = 1e-5
    scale_embeddings: bool = True
    scale_attention: bool = True
    tied_embeddings: str = "all"
    scale_output: bool = False
    position: str = "sinusoidal"
    max_positions: int = 1024
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    rotary_base: float = 10000.0
    relative_kind: str = "t5"
    relative_buckets: int = 32
    relative_max_distance: int = 128

    @property
    def columns(self) -> int:  # columns of a head
        return self.head_width or self.width // self.heads

    @property
    def key_heads(self) -> int:
        return self.kv_heads or self.heads


POST = Config(source_vocabulary=37, target_vocabulary=37, encoder_layers=2, decoder_layers=2, width=40,
              heads=2, feed_forward=72, max_positions=16)
SMALL = replace(POST, width=26, feed_forward=46)  # an odd head width, and smaller files
TINY = replace(SMALL, encoder_layers=1, width=16, feed_forward=20)
FIXTURES = dict(
    post=POST,
    pre=replace(SMALL, norm_placement="pre"),
    options=replace(SMALL, source_vocabulary=41, encoder_layers=1, norm_placement="pre", norm="rms",
                    activation="swiglu", tied_embeddings="none", position="learned"),
    gelu=replace(SMALL, source_vocabulary=41, encoder_layers=1, decoder_layers=1, activation="gelu",
                 tied_embeddings="target", position="none"),
    rotary=replace(TINY, norm_placement="pre", position="rotary", rotary_base=100.0, kv_heads=1, head_width=6),
    alibi=replace(TINY, width=18, heads=6, kv_heads=3, activation="gelu_tanh", position="alibi", bias=False),
    clipped=replace(TINY, position="relative", relative_kind="clipped", relative_max_distance=4, kv_heads=1,
                    head_width=5, scale_attention=False),
    relative=replace(TINY, norm_placement="pre", norm="rms", activation="geglu", position="relative",
                     relative_buckets=8, relative_max_distance=9, scale_embeddings=False, scale_output=True))
SOURCE_LENGTHS = [7, 1, 11, 4, 9]  # with </s>
TARGET_LENGTHS = [5, 3, 0, 10, 8]  # without <s> and </s>
BASE = Config(source_vocabulary=8000, target_vocabulary=8000)
BASE_SOURCE_LENGTHS = [40, 1, 17, 33, 8, 26, 39, 12]
BASE_TARGET_LENGTHS = [35, 2, 20, 39, 0, 24, 31, 15]


# The model. Its attributes are nested so that PyTorch gives the parameters Nunchi's names.


def make_norm(config: Config) -> nn.Module:
    kind = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
    return kind(config.width, eps=config.norm_epsilon)


def attend(config: Config, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """q [B, T, H · D], k and v [B, S, kv_heads · D], mask [B, T, S]: true where a row may attend;
    bias [H, T, S] is added to the scores."""
    def split(x: Tensor, heads: int) -> Tensor:  # [B, H, rows, D]; repeats shared heads of keys and values
        x = x.unflatten(-1, (heads, config.columns)).transpose(1, 2)
        return x if heads == config.heads else x.repeat_interleave(config.heads // heads, dim=1)

    scores = split(q, config.heads) @ split(k, config.key_heads).transpose(2, 3)
    if config.scale_attention:
        scores = scores / math.sqrt(config.columns)
    weights = torch.softmax((scores + bias).masked_fill(~mask[:, None], -math.inf), dim=-1)
    return (weights @ split(v, config.key_heads)).transpose(1, 2).flatten(2)


def rotated(config: Config, x: Tensor) -> Tensor:
    """x [B, rows, heads · D]: rotates the pair (x[i], x[i + D/2]) of each head as a complex number."""
    x = x.unflatten(-1, (-1, 2, config.columns // 2))
    frequencies = config.rotary_base ** (-torch.arange(config.columns // 2, dtype=torch.float64) * 2 / config.columns)
    angles = torch.arange(x.shape[1])[:, None, None] * frequencies
    rotated_pairs = torch.complex(x[..., 0, :], x[..., 1, :]) * torch.polar(torch.ones_like(angles), angles)
    return torch.stack([rotated_pairs.real, rotated_pairs.imag], dim=-2).flatten(2)


def alibi(heads: int, rows: int) -> Tensor:  # [H, rows, rows]
    def slopes(count: int) -> list[float]:
        return [2 ** (-8 * (h + 1) / count) for h in range(count)]

    power = 2 ** int(math.log2(heads))
    chosen = slopes(power) + slopes(2 * power)[::2][:heads - power]
    positions = torch.arange(rows)
    distance = (positions[:, None] - positions[None, :]).abs()
    return -torch.tensor(chosen, dtype=torch.float64)[:, None, None] * distance


def bucket(config: Config, relative: int, bidirectional: bool) -> int:
    """The table's row for a key `relative` positions after the query."""
    distance, far = abs(relative), config.relative_max_distance
    if config.relative_kind == "clipped":
        if relative > 0:
            return far + min(distance, far) if bidirectional else 0
        return min(distance, far)
    buckets, first = config.relative_buckets, 0
    if bidirectional:
        buckets //= 2
        first = buckets if relative > 0 else 0
    elif relative > 0:
        distance = 0
    exact = buckets // 2
    if distance < exact:
        return first + distance
    grown = math.log(distance / exact) / math.log(far / exact) * (buckets - exact)
    return first + min(exact + int(grown), buckets - 1)


class SelfAttention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.sizes = [heads * config.columns for heads in (config.heads, config.key_heads, config.key_heads)]
        self.qkv = nn.Linear(config.width, sum(self.sizes), bias=config.bias)
        self.output = nn.Linear(self.sizes[0], config.width, bias=config.bias)
        self.norm = make_norm(config)

    def forward(self, x: Tensor, mask: Tensor, bias: Tensor | float) -> Tensor:
        q, k, v = self.qkv(x).split(self.sizes, dim=-1)
        if self.config.position == "rotary":
            q, k = rotated(self.config, q), rotated(self.config, k)
        return self.output(attend(self.config, q, k, v, mask, bias))


class CrossAttention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.query = nn.Linear(config.width, config.heads * config.columns, bias=config.bias)
        self.output = nn.Linear(config.heads * config.columns, config.width, bias=config.bias)
        self.norm = make_norm(config)

    def forward(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return self.output(attend(self.config, self.query(x), k, v, mask))


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.activation = config.activation
        columns = 2 if config.activation in ("swiglu", "geglu") else 1
        self.up = nn.Linear(config.width, columns * config.feed_forward, bias=config.bias)
        self.down = nn.Linear(config.feed_forward, config.width, bias=config.bias)
        self.norm = make_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.up(x)
        def gelu_tanh(t: Tensor) -> Tensor:
            return F.gelu(t, approximate="tanh")

        if self.activation in ("swiglu", "geglu"):
            gate, linear = hidden.chunk(2, dim=-1)
            return self.down((F.silu if self.activation == "swiglu" else gelu_tanh)(gate) * linear)
        functions = dict(relu=F.relu, gelu=F.gelu, gelu_tanh=gelu_tanh)
        return self.down(functions[self.activation](hidden))


class Layer(nn.Module):
    """A layer of the encoder or, with `cross`, of the decoder."""

    def __init__(self, config: Config, cross: bool):
        super().__init__()
        self.pre = config.norm_placement == "pre"
        self.self_attention = SelfAttention(config)
        if cross:
            self.cross_attention = CrossAttention(config)
        self.feed_forward = FeedForward(config)

    def around(self, x: Tensor, sublayer: nn.Module, *more: Tensor) -> Tensor:
        if self.pre:
            return x + sublayer(sublayer.norm(x), *more)
        return sublayer.norm(x + sublayer(x, *more))

    def forward(self, x: Tensor, mask: Tensor, bias: Tensor | float, *memory: Tensor) -> Tensor:
        x = self.around(x, self.self_attention, mask, bias)
        if memory:  # keys, values, mask
            x = self.around(x, self.cross_attention, *memory)
        return self.around(x, self.feed_forward)


class Stack(nn.Module):
    """The common part of encoder and decoder: layers and, depending on the config, positions and a last norm."""

    def __init__(self, config: Config, layers: int, cross: bool, bidirectional: bool):
        super().__init__()
        self.config, self.bidirectional = config, bidirectional
        self.layers = nn.ModuleList(Layer(config, cross) for _ in range(layers))
        if config.position == "learned":
            self.position = nn.Embedding(config.max_positions, config.width)
        if config.position == "relative":
            buckets = config.relative_buckets
            if config.relative_kind == "clipped":
                buckets = (2 if self.bidirectional else 1) * config.relative_max_distance + 1
            self.position = nn.Embedding(buckets, config.heads)
        if config.norm_placement == "pre":
            self.norm = make_norm(config)

    def bias(self, rows: int) -> Tensor | float:  # added to attention scores, [H, rows, rows]
        if self.config.position == "alibi":
            return alibi(self.config.heads, rows)
        if self.config.position == "relative":
            table = torch.tensor([[bucket(self.config, j - i, self.bidirectional) for j in range(rows)]
                                  for i in range(rows)])
            return self.position(table).permute(2, 0, 1)
        return 0.0


class Transformer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.encoder = Stack(config, config.encoder_layers, cross=False, bidirectional=True)
        self.decoder = Stack(config, config.decoder_layers, cross=True, bidirectional=False)
        self.decoder.memory_kv = nn.Linear(
            config.width, config.decoder_layers * 2 * config.key_heads * config.columns, bias=config.bias)
        if config.tied_embeddings == "all":
            self.shared = nn.Module()
            self.shared.embedding = nn.Embedding(config.source_vocabulary, config.width)
        else:
            self.encoder.embedding = nn.Embedding(config.source_vocabulary, config.width)
            self.decoder.embedding = nn.Embedding(config.target_vocabulary, config.width)
        if config.tied_embeddings == "none":
            self.decoder.output = nn.Linear(config.width, config.target_vocabulary, bias=False)

    def embed(self, stack: Stack, ids: Tensor) -> Tensor:  # [B, N] → [B, N, C]
        C, N = self.config.width, ids.shape[1]
        table = self.shared.embedding if self.config.tied_embeddings == "all" else stack.embedding
        x = table(ids) * (math.sqrt(C) if self.config.scale_embeddings else 1)
        if self.config.position == "sinusoidal":
            columns = torch.arange(0, C, 2, dtype=torch.float64)
            angles = torch.arange(N)[:, None] / 10000 ** (columns / C)
            x = x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        if self.config.position == "learned":
            x = x + stack.position(torch.arange(N))
        return x

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """source [B, S], source_mask [B, S] (true for real tokens), target [B, T] → logits [B, T, V]."""
        S, T = source.shape[1], target.shape[1]
        memory = self.embed(self.encoder, source)
        for layer in self.encoder.layers:
            memory = layer(memory, source_mask[:, None].expand(-1, S, -1), self.encoder.bias(S))
        if self.config.norm_placement == "pre":
            memory = self.encoder.norm(memory)
        x = self.embed(self.decoder, target)
        causal = torch.ones(T, T, dtype=torch.bool).tril().expand(len(target), T, T)
        kv = self.decoder.memory_kv(memory).chunk(2 * self.config.decoder_layers, dim=-1)
        for i, layer in enumerate(self.decoder.layers):
            x = layer(x, causal, self.decoder.bias(T), kv[2 * i], kv[2 * i + 1],
                      source_mask[:, None].expand(-1, T, -1))
        if self.config.norm_placement == "pre":
            x = self.decoder.norm(x)
        if self.config.scale_output:
            x = x / math.sqrt(self.config.width)
        if self.config.tied_embeddings == "none":
            return self.decoder.output(x)
        table = self.shared if self.config.tied_embeddings == "all" else self.decoder
        return x @ table.embedding.weight.T


def draw_parameters(model: nn.Module, rng: np.random.Generator):
    """Draws parameters that are large enough to reveal wrong gradients, and rounds them to f32."""
    for name, parameter in model.named_parameters():
        values = rng.standard_normal(tuple(parameter.shape))
        if parameter.dim() == 2:
            values /= math.sqrt(parameter.shape[1])
        else:
            values = 0.1 * values + (1 if name.endswith("norm.weight") else 0)
        parameter.data = torch.from_numpy(values.astype(np.float32).astype(np.float64))


# The batch, its loss and the training.


class Batch:
    def __init__(self, sources: list[list[int]], targets: list[list[int]]):
        self.sources, self.targets = sources, targets
        self.source, self.source_mask = self.padded(sources)
        self.target, self.target_mask = self.padded([[BOS, *y] for y in targets])
        self.labels, _ = self.padded([[*y, EOS] for y in targets])
        self.tokens = int(self.target_mask.sum())

    @staticmethod
    def padded(sentences: list[list[int]]) -> tuple[Tensor, Tensor]:
        longest = max(map(len, sentences))
        ids = torch.tensor([s + [0] * (longest - len(s)) for s in sentences])
        return ids, torch.tensor([[i < len(s) for i in range(longest)] for s in sentences])

    def logits(self, model: Transformer) -> Tensor:  # [T, V], the real rows
        return model(self.source, self.source_mask, self.target)[self.target_mask]

    def loss(self, logits: Tensor, reduction: str = "sum") -> Tensor:
        labels = self.labels[self.target_mask]
        return F.cross_entropy(logits, labels, label_smoothing=SMOOTHING, reduction=reduction)


def draw_batch(config: Config, lengths: tuple[list[int], list[int]], rng: np.random.Generator) -> Batch:
    def words(vocabulary: int, count: int) -> list[int]:
        return rng.integers(FIRST_WORD, vocabulary, count).tolist()

    return Batch([words(config.source_vocabulary, n - 1) + [EOS] for n in lengths[0]],
                 [words(config.target_vocabulary, n) for n in lengths[1]])


def step_off_kinks(model: Transformer, batch: Batch):
    """Shifts the feed-forwards' biases slightly, so that no input of a ReLU is close to zero, where
    rounding could flip the gradient."""
    def move(up: nn.Linear, inputs: tuple[Tensor], hidden: Tensor) -> Tensor:
        shifts = torch.linspace(-0.02, 0.02, 41, dtype=torch.float64)
        nearest = torch.stack([(hidden + shift).abs().amin(dim=(0, 1)) for shift in shifts])
        up.bias.data = (up.bias + shifts[nearest.argmax(dim=0)]).float().double()
        return F.linear(inputs[0], up.weight, up.bias)

    hooks = [layer.feed_forward.up.register_forward_hook(move)
             for stack in (model.encoder, model.decoder) for layer in stack.layers]
    with torch.no_grad():
        batch.logits(model)
    for hook in hooks:
        hook.remove()


def check_padding(model: Transformer, batch: Batch, logits: Tensor):
    """Checks that a sentence gives the same rows alone, without padding, as in the batch."""
    alone = [Batch([x], [y]).logits(model) for x, y in zip(batch.sources, batch.targets)]
    torch.testing.assert_close(torch.cat(alone), logits, rtol=0, atol=1e-11)


def train(start: Transformer, batch: Batch, steps: int, optimizer: str) -> Tensor:
    model = copy.deepcopy(start)
    options = dict(lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    if optimizer == "adam":
        optimizer = torch.optim.Adam(model.parameters(), **options)
        max_norm = 1.0
    else:
        matrices = [p for p in model.parameters() if p.dim() >= 2]
        vectors = [p for p in model.parameters() if p.dim() < 2]
        optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=0.1),
                                       dict(params=vectors, weight_decay=0.0)], **options)
        max_norm = math.inf
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = batch.loss(batch.logits(model))
        losses.append(loss.item())
        (loss / batch.tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64)


def make_fixture(config: Config, lengths: tuple[list[int], list[int]], steps: int) -> dict[str, Tensor]:
    rng = np.random.default_rng(2017)
    model = Transformer(config)
    draw_parameters(model, rng)
    batch = draw_batch(config, lengths, rng)
    if config.activation == "relu":
        step_off_kinks(model, batch)
    logits = batch.logits(model)
    check_padding(model, batch, logits)
    loss = batch.loss(logits)
    loss.backward()
    fixture = dict(logits=logits, token_losses=batch.loss(logits, "none"), loss=loss.reshape(1),
                   losses=train(model, batch, steps, "adam"),
                   adamw_losses=train(model, batch, steps, "adamw"))
    for name, parameter in model.named_parameters():
        fixture["parameters/" + name] = parameter
        fixture["gradients/" + name] = parameter.grad
    for side, sentences in ("source", batch.sources), ("target", batch.targets):
        fixture[side + "_ids"] = torch.tensor(sum(sentences, []), dtype=torch.int32)
        fixture[side + "_lengths"] = torch.tensor([len(s) for s in sentences], dtype=torch.int32)
    return fixture


def write_safetensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]):
    """Replaces the writer of the safetensors package, whose order of metadata changes from run to run."""
    header, blocks, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in sorted(tensors.items()):
        integers = tensor.dtype == torch.int32
        blocks.append(tensor.detach().numpy().astype("<i4" if integers else "<f4").tobytes())
        header[name] = dict(dtype="I32" if integers else "F32", shape=list(tensor.shape),
                            data_offsets=[offset, offset + len(blocks[-1])])
        offset += len(blocks[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", metavar="FOLDER", type=Path, help="write the base model's file into FOLDER")
    folder = parser.parse_args().base
    if folder:
        jobs = [(folder / "base.safetensors", BASE, (BASE_SOURCE_LENGTHS, BASE_TARGET_LENGTHS), 3)]
    else:
        torch.set_num_threads(1)  # the bits of a sum depend on the number of threads
        folder = Path(__file__).parent
        jobs = [(folder / f"{name}.safetensors", config, (SOURCE_LENGTHS, TARGET_LENGTHS), 10)
                for name, config in FIXTURES.items()]
    folder.mkdir(parents=True, exist_ok=True)
    for path, config, lengths, steps in jobs:
        fixture = make_fixture(config, lengths, steps)
        config_json = json.dumps(asdict(config), indent=2) + "\n"
        metadata = {"config": config_json, "torch": torch.__version__}
        write_safetensors(path, fixture, metadata)
        losses = fixture["losses"].tolist()
        print(f"{path}: {path.stat().st_size:,} bytes, loss {losses[0]:.3f} to {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
