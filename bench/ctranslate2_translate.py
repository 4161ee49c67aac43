#!/usr/bin/env python3
"""Measures the speed of CTranslate2 on a Transformer, for docs/performance.md.

    pip install ctranslate2 numpy psutil        (torch, transformers, sentencepiece for --marian)
    ./ctranslate2_translate.py --precision int8 --beam 4 --batch 32 --threads 2
    ./ctranslate2_translate.py --marian FOLDER --source FILE --precision float32 --beam 1 --batch 1

Without --marian, it builds the paper's base model with random weights (the speed does not depend on their
values) and generates exactly --target-length tokens. With --marian, it converts a Hugging Face MarianMT folder,
translates the lines of --source until </s>, and writes the translations to --output. It prints one JSON line: decoded
tokens per second (tokens of the best hypothesis), milliseconds per sentence, peak resident memory, and the seconds
for loading the model and the first result.
"""
import argparse, json, os, resource, shutil, sys, tempfile, time


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--precision", default="int8", choices=["int8", "float32"])
    p.add_argument("--beam", type=int, default=4)
    p.add_argument("--batch", type=int, default=32, help="sentences per batch")
    p.add_argument("--sentences", type=int, default=0, help="default: 4 batches, at least 8")
    p.add_argument("--threads", type=int, default=2, help="threads of all workers together")
    p.add_argument("--workers", type=int, default=1, help="parallel translators that share the threads")
    p.add_argument("--d-model", type=int, default=512)
    p.add_argument("--ffn", type=int, default=2048)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--vocab", type=int, default=32000)
    p.add_argument("--source-length", type=int, default=24)
    p.add_argument("--target-length", type=int, default=32)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--marian", help="Hugging Face MarianMT folder")
    p.add_argument("--source", help="text with one sentence per line, for --marian")
    p.add_argument("--output", help="file for the translations, for --marian")
    return p.parse_args()


def random_model(a, folder):
    import numpy as np
    from ctranslate2.specs import transformer_spec, common_spec
    spec = transformer_spec.TransformerSpec.from_config(
        (a.layers, a.layers), a.heads, pre_norm=False, activation=common_spec.Activation.RELU)
    spec.config.add_source_eos = spec.config.add_source_bos = False
    rng = np.random.default_rng(1)
    C, F, V = a.d_model, a.ffn, a.vocab

    def linear(s, rows, cols):
        s.weight = (rng.standard_normal((rows, cols)) / cols ** 0.5).astype(np.float32)
        s.bias = np.zeros(rows, np.float32)

    def norm(s):
        s.gamma, s.beta = np.ones(C, np.float32), np.zeros(C, np.float32)

    def self_attention(s):
        norm(s.layer_norm); linear(s.linear[0], 3 * C, C); linear(s.linear[1], C, C)

    def feed_forward(s):
        norm(s.layer_norm); linear(s.linear_0, F, C); linear(s.linear_1, C, F)

    table = (rng.standard_normal((V, C)) / C ** 0.5).astype(np.float32)
    positions = rng.standard_normal((512, C)).astype(np.float32)
    for layer in spec.encoder.layer:
        self_attention(layer.self_attention); feed_forward(layer.ffn)
    for layer in spec.decoder.layer:
        self_attention(layer.self_attention); feed_forward(layer.ffn)
        s = layer.attention
        norm(s.layer_norm); linear(s.linear[0], C, C); linear(s.linear[1], 2 * C, C); linear(s.linear[2], C, C)
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = positions
    spec.encoder.embeddings[0].weight = table
    spec.decoder.embeddings.weight = table
    linear(spec.decoder.projection, V, C); spec.decoder.projection.weight = table
    words = ["<pad>", "<s>", "</s>", "<unk>"] + [f"w{i}" for i in range(V - 4)]
    spec.register_source_vocabulary(words); spec.register_target_vocabulary(words)
    spec.validate(); spec.optimize(quantization=a.precision); spec.save(folder)


def main():
    a = arguments()
    import ctranslate2, random
    folder = tempfile.mkdtemp()
    try:
        if a.marian:
            import ctranslate2.converters
            ctranslate2.converters.TransformersConverter(a.marian).convert(folder, quantization=a.precision, force=True)
            import transformers
            tokenizer = transformers.AutoTokenizer.from_pretrained(a.marian)
            lines = [l.rstrip("\n") for l in open(a.source, encoding="utf-8")]
            source = [tokenizer.convert_ids_to_tokens(tokenizer.encode(l)) for l in lines]
            lengths = dict(max_decoding_length=256)
        else:
            pid = os.fork()  # a child builds the model, so that building does not add to this process's peak memory
            if pid == 0:
                random_model(a, folder); os._exit(0)
            os.waitpid(pid, 0)
            rng = random.Random(2)
            n = a.sentences or max(8, 4 * a.batch)
            source = [[f"w{rng.randrange(a.vocab - 4)}" for _ in range(a.source_length)] for _ in range(n)]
            lengths = dict(min_decoding_length=a.target_length, max_decoding_length=a.target_length)
        load_start = time.perf_counter()
        translator = ctranslate2.Translator(folder, compute_type=a.precision,
                                            intra_threads=a.threads // a.workers, inter_threads=a.workers)
        options = dict(beam_size=a.beam, max_batch_size=a.batch, batch_type="examples", **lengths)
        translator.translate_batch(source[:1], **options)
        first = time.perf_counter() - load_start
        seconds, result = [], None
        for _ in range(a.repeat):
            t = time.perf_counter()
            result = translator.translate_batch(source, **options)
            seconds.append(time.perf_counter() - t)
        median = sorted(seconds)[len(seconds) // 2]
        tokens = sum(len(r.hypotheses[0]) for r in result)
        if a.output:
            with open(a.output, "w", encoding="utf-8") as f:
                for r in result:
                    ids = tokenizer.convert_tokens_to_ids(r.hypotheses[0])
                    f.write(tokenizer.decode(ids, skip_special_tokens=True) + "\n")
        print(json.dumps(dict(
            peer=f"ctranslate2 {ctranslate2.__version__}", precision=a.precision, beam=a.beam, batch=a.batch,
            threads=a.threads, workers=a.workers, sentences=len(source), tokens=tokens,
            tokens_per_s=round(tokens / median, 1), ms_per_sentence=round(1000 * median / len(source), 2),
            load_and_first_s=round(first, 3),
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
