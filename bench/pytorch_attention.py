#!/usr/bin/env python3
"""Measures PyTorch's scaled_dot_product_attention on the CPU: the peer of `nunchi bench attention`.

    pip install torch numpy
    bench/pytorch_attention.py --length 16384 --heads 8 --width 64 --threads 2 [--causal]

Attention over one sequence in f32. Prints one JSON line: median milliseconds and GFLOP/s of the forward and the
backward pass, peak memory. With N tokens and H heads of width D, the forward pass has 4 N² D H operations (two
matrix products), the backward pass 10 N² D H (five); causal attention has half of that.
"""
import argparse
import json
import os
import resource
import statistics
import time

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
p.add_argument("--length", type=int, default=16384)
p.add_argument("--heads", type=int, default=8)
p.add_argument("--width", type=int, default=64, help="width of a head")
p.add_argument("--causal", action="store_true")
p.add_argument("--threads", type=int, default=0)
p.add_argument("--repeat", type=int, default=3)
a = p.parse_args()
if a.threads:  # must be set before PyTorch is imported
    os.environ["OMP_NUM_THREADS"] = str(a.threads)

import torch
from torch.nn import functional as F


def main():
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    q, k, v, d_out = (torch.randn(1, a.heads, a.length, a.width) for _ in range(4))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    forward, backward = [], []
    for _ in range(1 + a.repeat):
        begin = time.perf_counter()
        out = F.scaled_dot_product_attention(q, k, v, is_causal=a.causal)
        middle = time.perf_counter()
        torch.autograd.grad(out, inputs, d_out)
        end = time.perf_counter()
        forward.append(middle - begin)
        backward.append(end - middle)
    forward_s, backward_s = statistics.median(forward[1:]), statistics.median(backward[1:])
    product = 2 * a.length ** 2 * a.width * a.heads / (2 if a.causal else 1)
    print(json.dumps(dict(
        peer=f"pytorch {torch.__version__}", length=a.length, heads=a.heads, width=a.width, causal=a.causal,
        threads=torch.get_num_threads(), forward_ms=round(1e3 * forward_s, 3), backward_ms=round(1e3 * backward_s, 3),
        forward_gflops=round(2 * product / forward_s / 1e9, 1),
        backward_gflops=round(5 * product / backward_s / 1e9, 1),
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)))


if __name__ == "__main__":
    main()
