#!/usr/bin/env python3
"""Computes small models of the families gpt and bert with Hugging Face's models and writes golden files, for every
kind of position.

    pip install torch numpy transformers
    python3 tests/golden/make_texts.py                 writes gpt_*.safetensors and bert_*.safetensors

    gpt   learned: GPT-2; none, sinusoidal: GPT-2 with that table; rotary: Llama; alibi: MPT
    bert  learned: BERT; none, sinusoidal: BERT with that table; rotary: RoFormer; relative: MPNet

Models that transformers lacks are built from make_golden.py's layers. Parameters are drawn and rounded to f32;
everything else is computed in f64 and stored as f32. Running it again gives the same bytes. A file holds these tensors,
for T tokens, of which N are predicted:

    parameters/NAME                   with Nunchi's names and shapes
    gradients/NAME                    of the summed loss
    target_ids, target_lengths        i32, one text after another
    logits [T, V]                     one row per token
    token_losses [N], loss [1]        with label smoothing; loss is the sum of token_losses

A gpt predicts each token of a text but the first. A bert predicts every third token, which [MASK] replaces, in all
texts but the second.

The metadata are "config" (the text of the model's config.json) and the versions of torch and transformers.
"""
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from unittest import mock

import numpy as np
import torch
import transformers
from make_golden import SMOOTHING, Config, Stack, make_norm, write_safetensors
from torch import Tensor, nn
from torch.nn import functional as F

MASK = 3
LENGTHS = [8, 2, 17, 5]
Tensors = dict[str, Tensor]

SMALL = dict(vocabulary=41, layers=1, width=16, heads=2, feed_forward=20, norm_epsilon=1e-5, dropout=0.0,
             attention_dropout=0.0, activation_dropout=0.0)
GPT = dict(family="gpt", **SMALL, norm_placement="pre", norm="layer", activation="gelu_tanh", tied_embeddings=True,
           max_positions=18)
BERT = dict(family="bert", **SMALL, norm_placement="post", norm="layer", activation="gelu", max_positions=18, labels=[])


@dataclass
class Golden:
    config: dict
    model: nn.Module  # called with one text's tokens [1, T], gives logits
    rename: Callable[[Tensors], Tensors] = lambda tensors: tensors  # to Nunchi's names and shapes


def renamed(tensors: Tensors, rules: list[tuple[str, str]], transposed: str = "$^") -> Tensors:
    """Renames tensors by regular expressions. Tensors renamed to NAME#0, NAME#1, … are concatenated to NAME; tensors
    renamed to nothing are left out. Matrices whose name matches `transposed` are transposed."""
    parts = {}
    for name, values in tensors.items():
        if re.search(transposed, name) and values.dim() == 2:
            values = values.t()
        for theirs, ours in rules:
            name = re.sub(theirs, ours, name)
        if name:
            name, _, part = re.sub(r"(#\d)(\..*)", r"\2\1", name).partition("#")
            parts.setdefault(name, {})[part] = values
    return {name: torch.cat([values for _, values in sorted(found.items())]) for name, found in parts.items()}


def sinusoids(positions: int, width: int) -> Tensor:
    angles = torch.arange(positions)[:, None] / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def fix_table(table: nn.Embedding, position: str):
    """Replaces a table of positions by one that is not learned."""
    table.weight.data = sinusoids(*table.weight.shape) if position == "sinusoidal" else torch.zeros_like(table.weight)
    table.weight.requires_grad_(False)


def gpt2(position: str) -> Golden:
    config = dict(GPT, position=position, layers=2 if position == "learned" else 1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=config["vocabulary"], n_positions=config["max_positions"], n_embd=config["width"],
        n_layer=config["layers"], n_head=config["heads"], n_inner=config["feed_forward"],
        activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="eager")).double()
    if position != "learned":
        fix_table(model.transformer.wpe, position)
    rules = [(r"^transformer\.", ""), ("^wte", "decoder.embedding"), ("^wpe", "decoder.position"),
             (r"^h\.", "decoder.layers."), ("^ln_f", "decoder.norm"), ("ln_1", "self_attention.norm"),
             ("ln_2", "feed_forward.norm"), (r"attn\.c_attn", "self_attention.qkv"),
             (r"attn\.c_proj", "self_attention.output"), (r"mlp\.c_fc", "feed_forward.up"),
             (r"mlp\.c_proj", "feed_forward.down")]
    return Golden(config, model, lambda tensors: renamed(tensors, rules, transposed=r"\.c_"))


def llama() -> Golden:
    config = dict(GPT, position="rotary", layers=2, width=20, heads=4, norm="rms", activation="swiglu", kv_heads=2,
                  head_width=6, bias=False, norm_epsilon=1e-6, tied_embeddings=False, rotary_base=500.0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=config["vocabulary"], hidden_size=config["width"], intermediate_size=config["feed_forward"],
        num_hidden_layers=config["layers"], num_attention_heads=config["heads"], num_key_value_heads=config["kv_heads"],
        head_dim=config["head_width"], hidden_act="silu", rms_norm_eps=config["norm_epsilon"], tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=config["rotary_base"]),
        attn_implementation="eager")).double()

    def exact_rotations(x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:  # Hugging Face's are computed in f32
        columns = torch.arange(0, config["head_width"], 2, dtype=torch.float64)
        angles = position_ids[..., None] / config["rotary_base"] ** (columns / config["head_width"])
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()

    theirs = model.model.rotary_emb(torch.zeros(1, dtype=torch.float64), torch.arange(17)[None])
    for rotation, expected in zip(exact_rotations(torch.zeros(1), torch.arange(17)[None]), theirs):
        torch.testing.assert_close(rotation, expected, rtol=0, atol=1e-5)
    model.model.rotary_emb.forward = exact_rotations
    rules = [(r"model\.embed_tokens", "decoder.embedding"), ("lm_head", "decoder.output"),
             (r"model\.norm", "decoder.norm"), (r"model\.layers", "decoder.layers"),
             ("input_layernorm", "self_attention.norm"), ("post_attention_layernorm", "feed_forward.norm"),
             (r"self_attn\.q_proj", "self_attention.qkv#0"), (r"self_attn\.k_proj", "self_attention.qkv#1"),
             (r"self_attn\.v_proj", "self_attention.qkv#2"), (r"self_attn\.o_proj", "self_attention.output"),
             (r"mlp\.gate_proj", "feed_forward.up#0"), (r"mlp\.up_proj", "feed_forward.up#1"),
             (r"mlp\.down_proj", "feed_forward.down")]
    return Golden(config, model, lambda tensors: renamed(tensors, rules))


def mpt() -> Golden:
    config = dict(GPT, position="alibi", activation="gelu", heads=4, feed_forward=64, bias=False)
    model = transformers.MptForCausalLM(transformers.MptConfig(
        vocab_size=config["vocabulary"], d_model=config["width"], n_heads=config["heads"], n_layers=config["layers"],
        max_seq_len=config["max_positions"], layer_norm_epsilon=config["norm_epsilon"], attn_implementation="eager"))
    for module in model.modules():  # MPT's norms have no biases
        if isinstance(module, nn.LayerNorm):
            module.bias = nn.Parameter(torch.zeros_like(module.weight))
    rules = [(r"^transformer\.", ""), ("^wte", "decoder.embedding"), (r"^blocks\.", "decoder.layers."),
             ("^norm_f", "decoder.norm"), ("norm_1", "self_attention.norm"), ("norm_2", "feed_forward.norm"),
             (r"attn\.Wqkv", "self_attention.qkv"), (r"attn\.out_proj", "self_attention.output"),
             (r"ffn\.up_proj", "feed_forward.up"), (r"ffn\.down_proj", "feed_forward.down")]
    return Golden(config, model.double(), lambda tensors: renamed(tensors, rules))


BERT_RULES = [(r"^\w+\.embeddings\.token_type.*", ""), (r"^\w+\.embeddings\.word_embeddings", "encoder.embedding"),
              (r"^\w+\.embeddings\.position_embeddings", "encoder.position"),
              (r"^\w+\.embeddings\.LayerNorm", "encoder.embedding.norm"), (r"^\w+\.encoder\.layer\.", "encoder.layers."),
              (r"attention\.self\.query", "self_attention.qkv#0"), (r"attention\.self\.key", "self_attention.qkv#1"),
              (r"attention\.self\.value", "self_attention.qkv#2"),
              (r"attention\.output\.dense", "self_attention.output"),
              (r"attention\.output\.LayerNorm", "self_attention.norm"), (r"intermediate\.dense", "feed_forward.up"),
              (r"(\d)\.output\.dense", r"\1.feed_forward.down"), (r"(\d)\.output\.LayerNorm", r"\1.feed_forward.norm"),
              (r"cls\.predictions\.transform\.dense", "masked.dense"),
              (r"cls\.predictions\.transform\.LayerNorm", "masked.norm"), (r"cls\.predictions\.bias", "masked.bias")]


def sizes_of(config: dict) -> dict:  # under the names of BERT's config
    return dict(vocab_size=config["vocabulary"], hidden_size=config["width"], num_hidden_layers=config["layers"],
                num_attention_heads=config["heads"], intermediate_size=config["feed_forward"], hidden_act="gelu",
                layer_norm_eps=config["norm_epsilon"], hidden_dropout_prob=0, attention_probs_dropout_prob=0,
                pad_token_id=None, attn_implementation="eager")


def bert(position: str) -> Golden:
    config = dict(BERT, position=position, layers=2 if position == "learned" else 1)
    model = transformers.BertForMaskedLM(transformers.BertConfig(
        **sizes_of(config), max_position_embeddings=config["max_positions"], type_vocab_size=1)).double()
    fix_table(model.bert.embeddings.token_type_embeddings, "none")  # Nunchi has no segment embeddings
    if position != "learned":
        fix_table(model.bert.embeddings.position_embeddings, position)
    return Golden(config, model, lambda tensors: renamed(tensors, BERT_RULES))


def roformer() -> Golden:
    config = dict(BERT, position="rotary")
    columns = config["width"] // config["heads"]
    model = transformers.RoFormerForMaskedLM(transformers.RoFormerConfig(
        **sizes_of(config), max_position_embeddings=config["max_positions"], type_vocab_size=1)).double()
    fix_table(model.roformer.embeddings.token_type_embeddings, "none")
    # RoFormer's sinusoids are computed in f32, all sines before all cosines.
    exact = sinusoids(config["max_positions"], columns)
    exact = torch.cat([exact[:, ::2], exact[:, 1::2]], dim=1)
    torch.testing.assert_close(model.roformer.encoder.embed_positions.create_weight(), exact, rtol=0, atol=1e-6)
    model.roformer.encoder.embed_positions.weight = nn.Parameter(exact, requires_grad=False)
    # RoFormer rotates neighbouring columns, Nunchi column i with column i + D/2.
    halves = torch.arange(columns).reshape(-1, 2).t().flatten()

    def rename(tensors: Tensors) -> Tensors:
        reordered = {name: values.unflatten(0, (-1, columns))[:, halves].flatten(0, 1)
                  if re.search(r"self\.(query|key)", name) else values for name, values in tensors.items()}
        return renamed(reordered, BERT_RULES)

    return Golden(config, model, rename)


def mpnet() -> Golden:
    config = dict(BERT, position="relative", relative_kind="t5", relative_buckets=32, relative_max_distance=128)
    sizes = dict(sizes_of(config), pad_token_id=1)
    model = transformers.MPNetForMaskedLM(transformers.MPNetConfig(
        **sizes, max_position_embeddings=64, relative_attention_num_buckets=32)).double()
    fix_table(model.mpnet.embeddings.position_embeddings, "none")
    model.mpnet.embeddings.word_embeddings.padding_idx = None  # an ordinary token here
    rules = [(r"attention\.attn\.q\b", "attention.self.query"), (r"attention\.attn\.k\b", "attention.self.key"),
             (r"attention\.attn\.v\b", "attention.self.value"), (r"attention\.attn\.o\b", "attention.output.dense"),
             (r"attention\.LayerNorm", "attention.output.LayerNorm"), (r"^mpnet\.embeddings\.position.*", ""),
             (r"^mpnet\.encoder\.relative_attention_bias", "encoder.position"), (r"^lm_head\.dense", "masked.dense"),
             (r"^lm_head\.layer_norm", "masked.norm"), (r"^lm_head\.(decoder\.)?bias", "masked.bias"), *BERT_RULES]
    return Golden(config, model, lambda tensors: renamed(tensors, rules))


class TextModel(nn.Module):
    """A model built from make_golden.py's layers, with Nunchi's names."""

    def __init__(self, config: dict):
        super().__init__()
        known = {field.name for field in fields(Config)}
        self.config = Config(**{key: value for key, value in config.items() if key in known and key != "tied_embeddings"})
        self.causal = config["family"] == "gpt"
        stack = Stack(self.config, config["layers"], cross=False, bidirectional=not self.causal)
        stack.embedding = nn.Embedding(config["vocabulary"], config["width"])
        self.add_module("decoder" if self.causal else "encoder", stack)
        if not self.causal:
            if config["norm_placement"] == "post":
                stack.embedding.norm = make_norm(self.config)
            self.masked = nn.Module()
            self.masked.dense = nn.Linear(config["width"], config["width"], bias=self.config.bias)
            self.masked.norm = make_norm(self.config)
            self.masked.bias = nn.Parameter(torch.zeros(config["vocabulary"]))
        self.double()

    def forward(self, ids: Tensor) -> Tensor:
        N, stack = ids.shape[1], self.decoder if self.causal else self.encoder
        x = stack.embedding(ids)
        if hasattr(stack.embedding, "norm"):
            x = stack.embedding.norm(x)
        mask = torch.ones(1, N, N, dtype=torch.bool)
        for layer in stack.layers:
            x = layer(x, mask.tril() if self.causal else mask, stack.bias(N))
        if hasattr(stack, "norm"):
            x = stack.norm(x)
        if self.causal:
            return x @ stack.embedding.weight.T
        return self.masked.norm(F.gelu(self.masked.dense(x))) @ stack.embedding.weight.T + self.masked.bias


def plain(base: dict, **options) -> Golden:
    config = dict(base, **options)
    return Golden(config, TextModel(config))


FIXTURES = dict(
    gpt_learned=gpt2("learned"), gpt_none=gpt2("none"), gpt_sinusoidal=gpt2("sinusoidal"), gpt_rotary=llama(),
    gpt_alibi=mpt(),
    gpt_relative=plain(GPT, position="relative", relative_kind="t5", relative_buckets=8, relative_max_distance=9,
                       kv_heads=1, norm="rms", activation="geglu", scale_attention=False),
    gpt_clipped=plain(GPT, position="relative", relative_kind="clipped", relative_max_distance=4, head_width=5),
    bert_learned=bert("learned"), bert_none=bert("none"), bert_sinusoidal=bert("sinusoidal"), bert_rotary=roformer(),
    bert_relative=mpnet(),
    bert_clipped=plain(BERT, position="relative", relative_kind="clipped", relative_max_distance=4, kv_heads=1),
    bert_alibi=plain(BERT, position="alibi", width=18, heads=6, kv_heads=3, norm_placement="pre", norm="rms", bias=False))


def draw_parameters(model: nn.Module, rng: np.random.Generator):
    """Draws parameters that are large enough to reveal wrong gradients, and rounds them to f32."""
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        spread = 0.3 if parameter.dim() > 1 else 0.1
        centre = 1.0 if re.search(r"(norm|ln_|LayerNorm)[\w.]*weight$", name) and parameter.dim() == 1 else 0.0
        values = centre + spread * rng.standard_normal(tuple(parameter.shape))
        parameter.data = torch.from_numpy(values.astype(np.float32).astype(np.float64))


def make_fixture(golden: Golden) -> Tensors:
    rng = np.random.default_rng(2019)
    draw_parameters(golden.model, rng)
    golden.model.train(False)
    texts = [torch.from_numpy(rng.integers(0, golden.config["vocabulary"], n)) for n in LENGTHS]

    def logits_of(text: Tensor) -> Tensor:
        found = golden.model(text[None])
        return getattr(found, "logits", found)[0]

    logits = torch.cat([logits_of(text) for text in texts])
    if golden.config["family"] == "gpt":
        predicted, labels = [logits_of(text)[:-1] for text in texts], [text[1:] for text in texts]
    else:
        predicted, labels = [], []
        for i, text in enumerate(texts):
            if i == 1:
                continue
            masked = text.clone()
            masked[::3] = MASK
            predicted.append(logits_of(masked)[::3])
            labels.append(text[::3])
    losses = F.cross_entropy(torch.cat(predicted), torch.cat(labels), label_smoothing=SMOOTHING, reduction="none")
    losses.sum().backward()
    fixture = dict(logits=logits, token_losses=losses, loss=losses.sum().reshape(1), target_ids=torch.cat(texts).int(),
                   target_lengths=torch.tensor(LENGTHS, dtype=torch.int32))
    learned = {name: p for name, p in golden.model.named_parameters() if p.requires_grad}
    for kind, tensors in (("parameters", {n: p.data for n, p in learned.items()}),
                          ("gradients", {n: p.grad for n, p in learned.items()})):
        fixture |= {f"{kind}/{name}": values.contiguous() for name, values in golden.rename(tensors).items()}
    return fixture


def main():
    torch.set_num_threads(1)  # the bits of a sum depend on the number of threads
    for name, golden in FIXTURES.items():
        with mock.patch.object(torch.Tensor, "float", torch.Tensor.double):  # some models compute the softmax in f32
            fixture = make_fixture(golden)
        path = Path(__file__).parent / f"{name}.safetensors"
        write_safetensors(path, fixture, {"config": json.dumps(golden.config, indent=2) + "\n",
                                          "torch": torch.__version__, "transformers": transformers.__version__})
        print(f"{path.name}: {path.stat().st_size:,} bytes, loss {fixture['loss'].item():.3f}")


if __name__ == "__main__":
    main()
