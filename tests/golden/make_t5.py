#!/usr/bin/env python3
"""Computes small models of the family t5 with Hugging Face's T5 and writes golden files as make_golden.py does.

    pip install torch numpy transformers
    python3 tests/golden/make_t5.py              writes t5*.safetensors

The model is T5ForConditionalGeneration; parameters are drawn, rounded and renamed, and everything is computed in f64.
For kinds of positions that Hugging Face's T5 lacks, the model is make_golden.py's Transformer.
Running it again gives the same bytes.
"""
import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import Tensor, nn

import make_golden
from make_golden import (SOURCE_LENGTHS, TARGET_LENGTHS, Config, check_padding, draw_batch, train,
                         write_safetensors)

SMALL = Config(family="t5", source_vocabulary=37, target_vocabulary=37, encoder_layers=2, decoder_layers=2, width=16,
               heads=3, head_width=6, feed_forward=20, norm_placement="pre", norm="rms", norm_epsilon=1e-6,
               bias=False, scale_attention=False, scale_embeddings=False, position="relative", relative_buckets=8,
               relative_max_distance=9)
FIXTURES = dict(t5=replace(SMALL, scale_output=True),
                t5_v1_1=replace(SMALL, encoder_layers=1, activation="geglu", tied_embeddings="inputs"))
OTHER = replace(SMALL, encoder_layers=1, decoder_layers=1, heads=2, activation="geglu", max_positions=16)
OTHERS = dict(t5_clipped=replace(OTHER, relative_kind="clipped", relative_max_distance=4),
              **{f"t5_{position}": replace(OTHER, position=position, kv_heads=heads)
                 for position, heads in dict(none=0, sinusoidal=1, learned=0, rotary=1, alibi=1).items()})


def hugging_face(config: Config) -> transformers.T5Config:
    gated, tied = config.activation == "geglu", config.tied_embeddings == "all"
    made = transformers.T5Config(
        vocab_size=config.target_vocabulary, d_model=config.width, d_kv=config.head_width, d_ff=config.feed_forward,
        num_layers=config.encoder_layers, num_decoder_layers=config.decoder_layers, num_heads=config.heads,
        relative_attention_num_buckets=config.relative_buckets,
        relative_attention_max_distance=config.relative_max_distance, dropout_rate=0.0,
        layer_norm_epsilon=config.norm_epsilon, feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=tied, attn_implementation="eager")
    made.tie_word_embeddings = tied  # newer versions use the argument only for scale_decoder_outputs
    return made


class Model(nn.Module):
    """Has the same interface as make_golden.py's Transformer."""

    def __init__(self, config: Config):
        super().__init__()
        self.t5 = transformers.T5ForConditionalGeneration(hugging_face(config)).double()
        for stack in self.t5.encoder, self.t5.decoder:  # one table embeds both sides in every version
            stack.embed_tokens.weight = self.t5.shared.weight

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        return self.t5(input_ids=source, attention_mask=source_mask.long(), decoder_input_ids=target,
                       use_cache=False).logits


def draw_parameters(model: Model, rng: np.random.Generator):
    """Draws parameters that are large enough to reveal wrong gradients, and rounds them to f32."""
    for name, parameter in model.t5.named_parameters():
        values = rng.standard_normal(tuple(parameter.shape))
        if "norm" in name:
            values = 1 + 0.1 * values
        elif name != "shared.weight":
            values /= math.sqrt(parameter.shape[1])
        parameter.data = torch.from_numpy(values.astype(np.float32).astype(np.float64))


def renamed(config: Config, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors (parameters, or their gradients) under Nunchi's names and in its shapes."""
    found = {"shared.embedding.weight": tensors["shared.weight"]}
    if config.tied_embeddings != "all":
        found["decoder.output.weight"] = tensors["lm_head.weight"]
    memory = []
    for stack, layers in ("encoder", config.encoder_layers), ("decoder", config.decoder_layers):
        found[f"{stack}.norm.weight"] = tensors[f"{stack}.final_layer_norm.weight"]
        attention = f"{stack}.block.0.layer.0.SelfAttention"
        found[f"{stack}.position.weight"] = tensors[f"{attention}.relative_attention_bias.weight"]
        for i in range(layers):
            theirs, ours = f"{stack}.block.{i}.layer", f"{stack}.layers.{i}"
            last = 1 if stack == "encoder" else 2

            def weights(part: str, *names: str) -> Tensor:
                return torch.cat([tensors[f"{theirs}.{part}.{name}.weight"] for name in names])

            found[f"{ours}.self_attention.qkv.weight"] = weights("0.SelfAttention", "q", "k", "v")
            found[f"{ours}.self_attention.output.weight"] = weights("0.SelfAttention", "o")
            found[f"{ours}.self_attention.norm.weight"] = weights("0", "layer_norm")
            if stack == "decoder":
                found[f"{ours}.cross_attention.query.weight"] = weights("1.EncDecAttention", "q")
                found[f"{ours}.cross_attention.output.weight"] = weights("1.EncDecAttention", "o")
                found[f"{ours}.cross_attention.norm.weight"] = weights("1", "layer_norm")
                memory.append(weights("1.EncDecAttention", "k", "v"))
            up = ("wi_0", "wi_1") if config.activation == "geglu" else ("wi",)
            found[f"{ours}.feed_forward.up.weight"] = weights(f"{last}.DenseReluDense", *up)
            found[f"{ours}.feed_forward.down.weight"] = weights(f"{last}.DenseReluDense", "wo")
            found[f"{ours}.feed_forward.norm.weight"] = weights(f"{last}", "layer_norm")
    found["decoder.memory_kv.weight"] = torch.cat(memory)
    return found


def make_fixture(config: Config) -> dict[str, Tensor]:
    rng = np.random.default_rng(2019)
    model = Model(config).eval()
    draw_parameters(model, rng)
    batch = draw_batch(config, (SOURCE_LENGTHS, TARGET_LENGTHS), rng)
    logits = batch.logits(model)
    check_padding(model, batch, logits)
    loss = batch.loss(logits)
    loss.backward()
    fixture = dict(logits=logits, token_losses=batch.loss(logits, "none"), loss=loss.reshape(1),
                   losses=train(model, batch, 10, "adam"), adamw_losses=train(model, batch, 10, "adamw"))
    parameters = dict(model.t5.named_parameters())
    for name, tensor in renamed(config, parameters).items():
        fixture["parameters/" + name] = tensor
    for name, tensor in renamed(config, {n: p.grad for n, p in parameters.items()}).items():
        fixture["gradients/" + name] = tensor
    for side, sentences in ("source", batch.sources), ("target", batch.targets):
        fixture[side + "_ids"] = torch.tensor(sum(sentences, []), dtype=torch.int32)
        fixture[side + "_lengths"] = torch.tensor([len(s) for s in sentences], dtype=torch.int32)
    return fixture


def main():
    torch.set_num_threads(1)  # the bits of a sum depend on the number of threads
    lengths = SOURCE_LENGTHS, TARGET_LENGTHS
    jobs = [(name, config, make_fixture(config)) for name, config in FIXTURES.items()]
    jobs += [(name, config, make_golden.make_fixture(config, lengths, 10)) for name, config in OTHERS.items()]
    for name, config, fixture in jobs:
        path = Path(__file__).parent / f"{name}.safetensors"
        metadata = {"config": json.dumps(asdict(config), indent=2) + "\n", "torch": torch.__version__,
                    "transformers": transformers.__version__}
        write_safetensors(path, fixture, metadata)
        losses = fixture["losses"].tolist()
        print(f"{path}: {path.stat().st_size:,} bytes, loss {losses[0]:.3f} to {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
