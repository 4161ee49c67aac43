#!/usr/bin/env python3
"""What Hugging Face's BERT makes of small texts: the golden file bert.safetensors.

    pip install torch numpy transformers
    python3 tests/golden/make_bert.py

Parameters are drawn and rounded to f32; everything else is computed in f64 and stored as f32. Texts
are padded and masked there, and stand one after another here. The file holds, with M masked
tokens in all:

    parameters/NAME, gradients/NAME   Nunchi's names and shapes; of the summed loss
    text_ids, text_lengths            i32, <s> and </s> included
    positions, position_counts        i32: places of the masked tokens in their texts
    labels [M]                        i32: what stood there
    hidden [T, C]                     of all rows
    logits [M, V], token_losses [M]   of the masked ones
    loss [1]                          their sum

and as metadata "config", the text of the model's config.json, and the versions.
"""
import json
import re
from pathlib import Path

import numpy as np
import torch
import transformers
from make_golden import write_safetensors
from torch.nn import functional as F

CONFIG = dict(family="bert", vocabulary=41, layers=2, width=26, heads=2, feed_forward=46,
              norm_placement="post", norm="layer", activation="gelu", position="learned",
              max_positions=16, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, labels=[])
LENGTHS = [8, 3, 16, 5]  # with <s> and </s>
MASKED = [[1, 4], [1], [2, 3, 9, 14], []]  # a text may have nothing to say
BEGIN, END, MASK = 1, 2, 3


def make_model(rng: np.random.Generator) -> torch.nn.Module:
    config = transformers.BertConfig(
        vocab_size=CONFIG["vocabulary"], hidden_size=CONFIG["width"],
        num_hidden_layers=CONFIG["layers"], num_attention_heads=CONFIG["heads"],
        intermediate_size=CONFIG["feed_forward"], hidden_act="gelu",
        max_position_embeddings=CONFIG["max_positions"], type_vocab_size=1, layer_norm_eps=1e-5,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation="eager")
    model = transformers.BertForMaskedLM(config).double()
    for name, parameter in model.named_parameters():
        spread = 0.3 if parameter.dim() > 1 else 0.1
        centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        values = centre + spread * rng.standard_normal(tuple(parameter.shape))
        parameter.data = torch.from_numpy(values).float().double()
    # Nunchi has no kinds of segments.
    model.bert.embeddings.token_type_embeddings.weight.data.zero_()
    return model


NAMES = [(r"bert\.embeddings\.word_embeddings", "encoder.embedding"),
         (r"bert\.embeddings\.position_embeddings", "encoder.position"),
         (r"bert\.embeddings\.LayerNorm", "encoder.embedding.norm"),
         (r"bert\.encoder\.layer\.", "encoder.layers."),
         (r"attention\.output\.dense", "self_attention.output"),
         (r"attention\.output\.LayerNorm", "self_attention.norm"),
         (r"intermediate\.dense", "feed_forward.up"),
         (r"(\d)\.output\.dense", r"\1.feed_forward.down"),
         (r"(\d)\.output\.LayerNorm", r"\1.feed_forward.norm"),
         (r"cls\.predictions\.transform\.dense", "masked.dense"),
         (r"cls\.predictions\.transform\.LayerNorm", "masked.norm"),
         (r"cls\.predictions\.bias", "masked.bias")]


def our_tensors(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Q, K and V on top of one another, and Nunchi's names."""
    found = {}
    for name, values in tensors.items():
        if "token_type" in name or ".self.key." in name or ".self.value." in name:
            continue
        if ".self.query." in name:
            values = torch.cat([tensors[name.replace("query", part)] for part in ("query", "key", "value")])
            name = name.replace("attention.self.query", "self_attention.qkv")
        for theirs, ours in NAMES:
            name = re.sub(theirs, ours, name)
        found[name] = values
    return found


def main():
    torch.set_num_threads(1)  # a sum's bits depend on how many share it
    rng = np.random.default_rng(2018)
    model = make_model(rng)
    texts = [[BEGIN, *rng.integers(4, CONFIG["vocabulary"], n - 2).tolist(), END] for n in LENGTHS]
    labels = [texts[i][p] for i, places in enumerate(MASKED) for p in places]
    for text, places in zip(texts, MASKED):
        for p in places:
            text[p] = MASK
    longest = max(LENGTHS)
    ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    real = torch.tensor([[i < n for i in range(longest)] for n in LENGTHS])
    found = model(ids, attention_mask=real.long(), output_hidden_states=True)
    logits = torch.stack([found.logits[i, p] for i, places in enumerate(MASKED) for p in places])
    losses = F.cross_entropy(logits, torch.tensor(labels), reduction="none")
    losses.sum().backward()
    fixture = dict(hidden=found.hidden_states[-1][real], logits=logits, token_losses=losses,
                   loss=losses.sum().reshape(1),
                   text_ids=torch.tensor(sum(texts, []), dtype=torch.int32),
                   text_lengths=torch.tensor(LENGTHS, dtype=torch.int32),
                   positions=torch.tensor(sum(MASKED, []), dtype=torch.int32),
                   position_counts=torch.tensor([len(p) for p in MASKED], dtype=torch.int32),
                   labels=torch.tensor(labels, dtype=torch.int32))
    named = dict(model.named_parameters())
    for name, values in our_tensors({n: p.data for n, p in named.items()}).items():
        fixture["parameters/" + name] = values
    for name, values in our_tensors({n: p.grad for n, p in named.items()}).items():
        fixture["gradients/" + name] = values
    path = Path(__file__).parent / "bert.safetensors"
    write_safetensors(path, fixture, {"config": json.dumps(CONFIG, indent=2) + "\n",
                                      "torch": torch.__version__,
                                      "transformers": transformers.__version__})
    print(f"{path}: {path.stat().st_size:,} bytes, loss {losses.sum().item():.3f}")
    print(*sorted(name for name in fixture if name.startswith("parameters/")), sep="\n")


if __name__ == "__main__":
    main()
