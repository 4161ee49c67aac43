#!/usr/bin/env python3
"""What Hugging Face's GPT-2 makes of a small text: the golden file gpt.safetensors.

    pip install torch numpy transformers
    python3 tests/golden/make_gpt.py

Parameters are drawn and rounded to f32; everything else is computed in f64 and stored as f32. Each
text of n + 1 tokens has n rows. The file holds, with T rows in all:

    parameters/NAME, gradients/NAME   Nunchi's names and shapes; of the summed loss
    text_ids, text_lengths            i32, one text after another
    logits [T, V], token_losses [T]   one text after another
    loss [1]                          their sum

and as metadata "config", the text of the model's config.json, and the versions.
"""
import json
from pathlib import Path

import numpy as np
import torch
import transformers
from make_golden import write_safetensors
from torch.nn import functional as F

CONFIG = dict(family="gpt", vocabulary=41, layers=2, width=26, heads=2, feed_forward=46,
              norm_placement="pre", norm="layer", activation="gelu_tanh", tied_embeddings=True,
              position="learned", max_positions=16, dropout=0.0, attention_dropout=0.0,
              activation_dropout=0.0)
LENGTHS = [8, 2, 17, 5]  # tokens; one less is said


def make_model(rng: np.random.Generator) -> torch.nn.Module:
    config = transformers.GPT2Config(
        vocab_size=CONFIG["vocabulary"], n_positions=CONFIG["max_positions"], n_embd=CONFIG["width"],
        n_layer=CONFIG["layers"], n_head=CONFIG["heads"], n_inner=CONFIG["feed_forward"],
        activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).double()
    for name, parameter in model.named_parameters():
        spread = 0.3 if parameter.dim() > 1 else 0.1
        centre = 1.0 if "ln_" in name and name.endswith("weight") else 0.0
        values = centre + spread * rng.standard_normal(tuple(parameter.shape))
        parameter.data = torch.from_numpy(values).float().double()
    return model


def our_name(name: str) -> str:
    """transformer.h.0.attn.c_attn.weight → decoder.layers.0.self_attention.qkv.weight"""
    for theirs, ours in (("transformer.", ""), ("wte", "decoder.embedding"), ("wpe", "decoder.position"),
                         ("h.", "decoder.layers."), ("ln_f", "decoder.norm"),
                         ("ln_1", "self_attention.norm"), ("ln_2", "feed_forward.norm"),
                         ("attn.c_attn", "self_attention.qkv"), ("attn.c_proj", "self_attention.output"),
                         ("mlp.c_fc", "feed_forward.up"), ("mlp.c_proj", "feed_forward.down")):
        name = ours + name[len(theirs):] if name.startswith(theirs) else name.replace("." + theirs, "." + ours)
    return name


def ours(name: str, values: torch.Tensor) -> torch.Tensor:
    """Their linear layers are stored the other way round."""
    return values.t().contiguous() if ".c_" in name and values.dim() == 2 else values


def main():
    torch.set_num_threads(1)  # a sum's bits depend on how many share it
    rng = np.random.default_rng(2019)
    model = make_model(rng)
    texts = [torch.from_numpy(rng.integers(0, CONFIG["vocabulary"], n)) for n in LENGTHS]
    logits = torch.cat([model(text[None, :-1]).logits[0] for text in texts])
    losses = F.cross_entropy(logits, torch.cat([text[1:] for text in texts]), reduction="none")
    losses.sum().backward()
    fixture = dict(logits=logits, token_losses=losses, loss=losses.sum().reshape(1),
                   text_ids=torch.cat(texts).int(),
                   text_lengths=torch.tensor(LENGTHS, dtype=torch.int32))
    for name, parameter in model.named_parameters():
        fixture["parameters/" + our_name(name)] = ours(name, parameter.data)
        fixture["gradients/" + our_name(name)] = ours(name, parameter.grad)
    path = Path(__file__).parent / "gpt.safetensors"
    write_safetensors(path, fixture, {"config": json.dumps(CONFIG, indent=2) + "\n", "torch": torch.__version__,
                                      "transformers": transformers.__version__})
    print(f"{path}: {path.stat().st_size:,} bytes, loss {losses.sum().item():.3f}")
    print(*sorted(name for name in fixture if name.startswith("parameters/")), sep="\n")


if __name__ == "__main__":
    main()
