#!/usr/bin/env python3
"""What Hugging Face's Llama makes of a small text: the golden file llama.safetensors, as make_gpt.py's. It is a gpt with
rotary positions, grouped heads of keys and values, RMSNorm, SwiGLU and no biases.

    pip install torch numpy transformers
    python3 tests/golden/make_llama.py
"""
import json
from pathlib import Path

import numpy as np
import torch
import transformers
from make_golden import write_safetensors
from torch import Tensor
from torch.nn import functional as F

CONFIG = dict(family="gpt", vocabulary=41, layers=2, width=20, heads=4, feed_forward=22, norm_placement="pre",
              norm="rms", activation="swiglu", kv_heads=2, head_width=6, bias=False, norm_epsilon=1e-6,
              tied_embeddings=False, position="rotary", rotary_base=500.0, dropout=0.0, attention_dropout=0.0,
              activation_dropout=0.0)
LENGTHS = [8, 2, 17, 5]  # tokens; one less is said


def make_model(rng: np.random.Generator) -> torch.nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=CONFIG["vocabulary"], hidden_size=CONFIG["width"], intermediate_size=CONFIG["feed_forward"],
        num_hidden_layers=CONFIG["layers"], num_attention_heads=CONFIG["heads"],
        num_key_value_heads=CONFIG["kv_heads"], head_dim=CONFIG["head_width"], hidden_act="silu",
        rms_norm_eps=CONFIG["norm_epsilon"], tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=CONFIG["rotary_base"]), attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).double()
    for name, parameter in model.named_parameters():
        spread = 0.3 if parameter.dim() > 1 else 0.1
        values = (1.0 if "norm" in name else 0.0) + spread * rng.standard_normal(tuple(parameter.shape))
        parameter.data = torch.from_numpy(values).float().double()

    def exact_turns(x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:  # theirs are made in f32
        columns = torch.arange(0, CONFIG["head_width"], 2, dtype=torch.float64)
        angles = position_ids[..., None] / CONFIG["rotary_base"] ** (columns / CONFIG["head_width"])
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()

    theirs = model.model.rotary_emb(torch.zeros(1, dtype=torch.float64), torch.arange(17)[None])
    for turn, expected in zip(exact_turns(torch.zeros(1), torch.arange(17)[None]), theirs):
        torch.testing.assert_close(turn, expected, rtol=0, atol=1e-5)
    model.model.rotary_emb.forward = exact_turns
    return model


def renamed(of: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors (parameters, or their gradients) under Nunchi's names and in its shapes."""
    found = {"decoder.embedding.weight": of["model.embed_tokens.weight"],
             "decoder.output.weight": of["lm_head.weight"], "decoder.norm.weight": of["model.norm.weight"]}
    for i in range(CONFIG["layers"]):
        theirs, ours = f"model.layers.{i}", f"decoder.layers.{i}"

        def weights(*names: str) -> Tensor:
            return torch.cat([of[f"{theirs}.{name}.weight"] for name in names])

        found[f"{ours}.self_attention.qkv.weight"] = weights(*(f"self_attn.{x}_proj" for x in "qkv"))
        found[f"{ours}.self_attention.output.weight"] = weights("self_attn.o_proj")
        found[f"{ours}.self_attention.norm.weight"] = weights("input_layernorm")
        found[f"{ours}.feed_forward.up.weight"] = weights("mlp.gate_proj", "mlp.up_proj")
        found[f"{ours}.feed_forward.down.weight"] = weights("mlp.down_proj")
        found[f"{ours}.feed_forward.norm.weight"] = weights("post_attention_layernorm")
    return found


def main():
    torch.set_num_threads(1)  # a sum's bits depend on how many share it
    rng = np.random.default_rng(2023)
    model = make_model(rng)
    texts = [torch.from_numpy(rng.integers(0, CONFIG["vocabulary"], n)) for n in LENGTHS]
    logits = torch.cat([model(text[None, :-1]).logits[0] for text in texts])
    losses = F.cross_entropy(logits, torch.cat([text[1:] for text in texts]), reduction="none")
    losses.sum().backward()
    fixture = dict(logits=logits, token_losses=losses, loss=losses.sum().reshape(1),
                   text_ids=torch.cat(texts).int(), text_lengths=torch.tensor(LENGTHS, dtype=torch.int32))
    parameters = dict(model.named_parameters())
    for name, tensor in renamed(parameters).items():
        fixture["parameters/" + name] = tensor
    for name, tensor in renamed({name: p.grad for name, p in parameters.items()}).items():
        fixture["gradients/" + name] = tensor
    path = Path(__file__).parent / "llama.safetensors"
    write_safetensors(path, fixture, {"config": json.dumps(CONFIG, indent=2) + "\n", "torch": torch.__version__,
                                      "transformers": transformers.__version__})
    print(f"{path}: {path.stat().st_size:,} bytes, loss {losses.sum().item():.3f}")


if __name__ == "__main__":
    main()
