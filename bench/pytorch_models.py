"""The paper's Transformer and GPT-2 in PyTorch, written for speed: the models of the peer scripts."""
import math
from typing import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PAD, BOS, EOS = 0, 1, 2
SHAPES = dict(  # width, heads, feed-forward, layers, dropout
    tiny=(128, 4, 256, 4, 0.2), base=(512, 8, 2048, 6, 0.1), big=(1024, 16, 4096, 6, 0.3))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, cross: bool = False):
        super().__init__()
        self.heads, self.dropout, self.cross = heads, dropout, cross
        if cross:
            self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        else:
            self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None,
                causal: bool = False) -> Tensor:
        B, T, C = x.shape

        def split(t: Tensor) -> Tensor:
            return t.view(B, -1, self.heads, C // self.heads).transpose(1, 2)

        if self.cross:
            q, (k, v) = self.q(x), self.kv(memory).chunk(2, -1)
        else:
            q, k, v = self.qkv(x).chunk(3, -1)
        out = F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask, is_causal=causal,
                                             dropout_p=self.dropout if self.training else 0.0)
        return self.output(out.transpose(1, 2).reshape(B, T, C))


class Layer(nn.Module):
    """`decoder` is None in an encoder, "causal" in GPT, "cross" in a decoder that attends to a memory."""

    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float, decoder: str | None,
                 pre: bool, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.pre, self.activation, self.decoder = pre, activation, decoder
        self.self_attention, self.norm1 = Attention(width, heads, dropout), nn.LayerNorm(width)
        if decoder == "cross":
            self.cross_attention, self.norm2 = Attention(width, heads, dropout, cross=True), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, feed_forward), nn.Linear(feed_forward, width)
        self.norm3, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def around(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        causal = self.decoder is not None
        x = self.around(x, self.norm1, lambda t: self.self_attention(t, mask=None if causal else mask, causal=causal))
        if self.decoder == "cross":
            x = self.around(x, self.norm2, lambda t: self.cross_attention(t, memory, mask))
        return self.around(x, self.norm3, lambda t: self.down(self.activation(self.up(t))))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, width: int, heads: int, feed_forward: int, layers: int, dropout: float,
                 pre: bool):
        super().__init__()
        self.width, self.pre = width, pre
        self.table = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.table.weight, std=width ** -0.5)

        def stack(decoder: str | None) -> nn.ModuleList:
            return nn.ModuleList(Layer(width, heads, feed_forward, dropout, decoder, pre, F.relu)
                                 for _ in range(layers))

        self.encoder, self.decoder = stack(None), stack("cross")
        self.dropout, self.last = nn.Dropout(dropout), nn.LayerNorm(width)
        angles = torch.arange(1024)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.table(ids) * math.sqrt(self.width) + self.positions[:ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, mask=mask)
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return F.linear(self.last(x) if self.pre else x, self.table.weight)


class Gpt(nn.Module):
    def __init__(self, vocabulary: int, width: int = 768, heads: int = 12, layers: int = 12, length: int = 1024):
        super().__init__()
        self.table, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads, 4 * width, 0.0, "causal", True,
                                          lambda t: F.gelu(t, approximate="tanh")) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, ids: Tensor, target: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        x = self.table(ids) + self.positions.weight[:ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.last(x), self.table.weight)
