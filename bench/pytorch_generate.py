#!/usr/bin/env python3
"""Measures the decoding speed of Hugging Face transformers on a MarianMT model, for docs/performance.md.

    pip install torch transformers sentencepiece
    ./pytorch_generate.py --batch 32 --beam 4 --threads 2
    ./pytorch_generate.py --device cuda --precision bf16 --batch 64 --beam 4
    ./pytorch_generate.py --marian FOLDER --source FILE --output FILE --batch 32 --beam 1

Without --marian, it uses the paper's base model with random weights and generates exactly --target-length tokens per
sentence. Prints one JSON line: decoded tokens per second, ms per sentence, peak memory.
"""
import argparse, json, os, resource, time

p = argparse.ArgumentParser()
p.add_argument("--device", default="cpu"); p.add_argument("--threads", type=int, default=0)
p.add_argument("--precision", default="f32", choices=["f32", "bf16"])
p.add_argument("--batch", type=int, default=32); p.add_argument("--beam", type=int, default=1)
p.add_argument("--vocab", type=int, default=32000)
p.add_argument("--source-length", type=int, default=24); p.add_argument("--target-length", type=int, default=32)
p.add_argument("--repeat", type=int, default=3)
p.add_argument("--marian"); p.add_argument("--source"); p.add_argument("--output")
a = p.parse_args()
if a.threads: os.environ["OMP_NUM_THREADS"] = str(a.threads)
import torch, transformers
from transformers import MarianConfig, MarianMTModel
if a.threads: torch.set_num_threads(a.threads)
torch.manual_seed(0)
transformers.logging.set_verbosity_error()
dtype = torch.bfloat16 if a.precision == "bf16" else torch.float32
sync = torch.cuda.synchronize if a.device.startswith("cuda") else lambda: None

if a.marian:
    tokenizer = transformers.AutoTokenizer.from_pretrained(a.marian)
    model = MarianMTModel.from_pretrained(a.marian)
    lines = [l.rstrip("\n") for l in open(a.source, encoding="utf-8")]
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    groups = [order[i:i + a.batch] for i in range(0, len(order), a.batch)]
    inputs = [tokenizer([lines[i] for i in g], return_tensors="pt", padding=True) for g in groups]
    lengths = dict(max_new_tokens=256)
else:
    model = MarianMTModel(MarianConfig(vocab_size=a.vocab, d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048,
        pad_token_id=0, eos_token_id=2, decoder_start_token_id=0, forced_eos_token_id=None, max_position_embeddings=512))
    inputs = [dict(input_ids=torch.randint(4, a.vocab, (a.batch, a.source_length)))]
    lengths = dict(min_new_tokens=a.target_length, max_new_tokens=a.target_length)
model = model.to(a.device).to(dtype).eval()
seconds = []
for _ in range(a.repeat + 1):
    sync(); t = time.perf_counter(); results = []
    with torch.inference_mode():
        for i in inputs:
            results.append(model.generate(**{k: v.to(a.device) for k, v in i.items()}, num_beams=a.beam, do_sample=False, **lengths))
    sync(); seconds.append(time.perf_counter() - t)
median = sorted(seconds[1:])[a.repeat // 2]
if a.marian:
    text = {}
    for g, r in zip(groups, results): text.update(zip(g, tokenizer.batch_decode(r, skip_special_tokens=True)))
    if a.output: open(a.output, "w", encoding="utf-8").write("".join(text[i] + "\n" for i in range(len(lines))))
    tokens = sum(int((r[:, 1:] != model.config.pad_token_id).sum()) for r in results); n = len(lines)
else: tokens, n = a.batch * a.target_length, a.batch
memory = torch.cuda.max_memory_allocated() // 2 ** 20 if a.device.startswith("cuda") else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps(dict(peer=f"transformers {transformers.__version__}, pytorch {torch.__version__}", device=a.device,
    precision=a.precision, batch=a.batch, beam=a.beam, threads=a.threads, sentences=n, tokens=tokens,
    tokens_per_s=round(tokens / median, 1), ms_per_sentence=round(1000 * median / n, 2), peak_mib=memory)))
