#!/usr/bin/env python3
"""usage: make_fixture.py FOLDER

Writes the payloads that the tests of the page show, one JSON file each. The small ones come from a
small Transformer in plain Python with seeded random weights, so that all numbers fit together; the
large ones have the sizes of a base model and random values.
"""
import base64
import json
import math
import os
import random
import struct
import sys

WIDTH, HEADS, LAYERS, HIDDEN = 32, 4, 2, 64
HEAD_WIDTH = WIDTH // HEADS

# Piece and meaning: aligned words of the two sentences share a meaning, so that cross-attention has
# something to find.
SOURCE = [("▁고양이", "cat"), ("는", "the"), ("▁침대", "bed"), ("에서", "on"), ("▁잔다", "sleep"), ("</s>", "end")]
TARGET = [("▁The", "the"), ("▁cat", "cat"), ("▁sleep", "sleep"), ("s", "sleep"), ("▁on", "on"), ("▁the", "the"),
          ("▁bed", "bed"), ("</s>", "end")]
OTHERS = ["▁a", "▁dog", "▁sofa", "▁floor", "▁sits", "▁rests", "▁under", "▁chair", "ing", "▁mat", "▁and", "."]


def matmul(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def add(a, b):
    return [[x + y for x, y in zip(r, s)] for r, s in zip(a, b)]


def softmax(row):
    largest = max(row)
    exponentials = [math.exp(x - largest) for x in row]
    total = sum(exponentials)
    return [e / total for e in exponentials]


def mean_and_deviation(row):
    mean = sum(row) / len(row)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in row) / len(row))


def norm(rows):
    result = []
    for row in rows:
        mean, deviation = mean_and_deviation(row)
        result.append([(x - mean) / (deviation + 1e-5) for x in row])
    return result


def sinusoid(count, width):
    return [[(math.sin if d % 2 == 0 else math.cos)(position / 10000 ** ((d - d % 2) / width)) for d in range(width)]
            for position in range(count)]


def cosine(a, b):
    product = sum(x * y for x, y in zip(a, b))
    return product / math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))


def rounded(rows, digits=5):
    return [[None if x == -math.inf else round(x, digits) for x in row] for row in rows]


def length(row):
    return math.sqrt(sum(x * x for x in row))


class Model:
    """A Transformer whose taps go to an inspection."""

    def __init__(self, seed, sharpness=1.0):
        self.random = random.Random(seed)
        self.sharpness = sharpness
        self.meanings = {}
        self.inspection = {"attention": [], "tensors": [], "norms": [], "gradient_weight": []}

    def matrix(self, rows, columns, scale=1.0):
        deviation = scale / math.sqrt(rows)
        return [[self.random.gauss(0, deviation) for _ in range(columns)] for _ in range(rows)]

    def meaning(self, name):
        if name not in self.meanings:
            self.meanings[name] = [self.random.gauss(0, 1) for _ in range(WIDTH)]
        return self.meanings[name]

    def tap(self, name, values, stack, layer=-1, part="", head=None):
        entry = {"tap": name, "stack": stack, "layer": layer, "part": part, "values": rounded(values)}
        if head is not None:
            entry["head"] = head
        self.inspection["tensors"].append(entry)

    def embed(self, stack, names):
        tokens = [[x + self.random.gauss(0, 0.3) for x in self.meaning(name)] for name in names]
        positions = sinusoid(len(names), WIDTH)
        self.tap("token_embedding", tokens, stack)
        self.tap("position", positions, stack)
        self.tap("embedding", add(tokens, positions), stack)
        return add(tokens, positions)

    def attend(self, stack, layer, part, x, memory, causal):
        shared = self.matrix(WIDTH, WIDTH, 1.3 * self.sharpness)
        noise = self.matrix(WIDTH, WIDTH, 0.5)
        w_query = shared
        w_key = add(shared, noise) if part == "cross_attention" else self.matrix(WIDTH, WIDTH, 1.3 * self.sharpness)
        query, key = matmul(x, w_query), matmul(memory, w_key)
        value = matmul(memory, self.matrix(WIDTH, WIDTH))
        self.tap("query", query, stack, layer, part)
        self.tap("key", key, stack, layer, part)
        self.tap("value", value, stack, layer, part)
        contexts = [[] for _ in x]
        for head in range(HEADS):
            columns = slice(head * HEAD_WIDTH, (head + 1) * HEAD_WIDTH)
            q, k, v = ([row[columns] for row in rows] for rows in (query, key, value))
            scores = matmul(q, [list(c) for c in zip(*k)])
            scaled = [[s / math.sqrt(HEAD_WIDTH) for s in row] for row in scores]
            if part == "self_attention" and head == 1:  # a head that looks at the token before
                bias = [[2.5 if j == i - 1 else 0.0 for j in range(len(memory))] for i in range(len(x))]
                self.tap("biased_scores", add(scaled, bias), stack, layer, part, head)
                biased = add(scaled, bias)
            else:
                biased = scaled
            masked = [[-math.inf if causal and j > i else s for j, s in enumerate(row)] for i, row in enumerate(biased)]
            weights = [softmax(row) for row in masked]
            self.tap("scores", scores, stack, layer, part, head)
            self.tap("scaled_scores", scaled, stack, layer, part, head)
            self.tap("masked_scores", masked, stack, layer, part, head)
            place = {"stack": stack, "layer": layer, "part": part, "head": head}
            self.inspection["attention"].append({**place, "kind": kind_of(weights), "weights": rounded(weights)})
            self.inspection["gradient_weight"].append(
                {**place, "weights": rounded([[w * abs(self.random.gauss(0, 0.2)) for w in row] for row in weights])})
            for context, row in zip(contexts, matmul(weights, v)):
                context.extend(row)
        self.tap("attention_context", contexts, stack, layer, part)
        output = matmul(contexts, self.matrix(WIDTH, WIDTH))
        self.tap("attention_output", output, stack, layer, part)
        return output

    def add_and_norm(self, stack, layer, part, x, branch):
        total = add(x, branch)
        normed = norm(total)
        self.tap("residual_sum", total, stack, layer, part)
        self.tap("norm_output", normed, stack, layer, part)
        before, after = ([mean_and_deviation(row) for row in rows] for rows in (total, normed))
        self.inspection["norms"].append({
            "stack": stack, "layer": layer, "part": part,
            "before": {"mean": [round(m, 4) for m, _ in before], "deviation": [round(d, 4) for _, d in before]},
            "after": {"mean": [round(m, 4) for m, _ in after], "deviation": [round(d, 4) for _, d in after]},
            "length": {"branch": [round(length(r), 4) for r in branch],
                       "stream": [round(length(r), 4) for r in total]}})
        return normed

    def stack(self, stack, x, memory=None):
        causal = stack == "decoder"
        for layer in range(LAYERS):
            x = self.add_and_norm(stack, layer, "self_attention", x,
                                  self.attend(stack, layer, "self_attention", x, x, causal))
            if memory is not None:
                x = self.add_and_norm(stack, layer, "cross_attention", x,
                                      self.attend(stack, layer, "cross_attention", x, memory, False))
            hidden = [[max(0.0, value) for value in row] for row in matmul(x, self.matrix(WIDTH, HIDDEN))]
            branch = matmul(hidden, self.matrix(HIDDEN, WIDTH))
            self.tap("feed_forward_hidden", hidden, stack, layer, "feed_forward")
            self.tap("feed_forward", branch, stack, layer, "feed_forward")
            x = self.add_and_norm(stack, layer, "feed_forward", x, branch)
            self.tap("layer_output", x, stack, layer)
        self.tap("stack_output", x, stack)
        return x

    def steps(self, pieces, names, certainty=6.0):
        vocabulary = [piece for piece, _ in TARGET] + OTHERS
        steps = []
        for position, (piece, name) in enumerate(zip(pieces, names)):
            logits = []
            for word in vocabulary:
                logits.append((certainty if word == piece else 0) + self.random.gauss(0, 1.4))
            probabilities = softmax(logits)
            order = sorted(range(len(vocabulary)), key=lambda i: -logits[i])
            entry = lambda i: {"piece": vocabulary[i], "id": 10 + i, "probability": round(probabilities[i], 5),
                               "logit": round(logits[i], 4)}
            steps.append({"position": position, **entry(vocabulary.index(piece) if certainty > 4 else order[0]),
                          "best": [entry(i) for i in order[:10]]})
        return steps


def kind_of(weights):
    rows, columns = len(weights), len(weights[0])
    mean = lambda pairs: sum(pairs) / max(1, len(pairs))
    entropies = [-sum(w * math.log(w) for w in row if w > 0) / math.log(max(2, columns)) for row in weights]
    measures = {
        "previous": mean([weights[i][i - 1] for i in range(1, rows) if i - 1 < columns]),
        "next": mean([weights[i][i + 1] for i in range(rows) if i + 1 < columns]),
        "first": mean([row[0] for row in weights]),
        "same word": mean([weights[i][i] for i in range(min(rows, columns))]),
        "broad": mean(entropies) * 0.5,
    }
    name = max(measures, key=measures.get)
    return {"name": name, "measure": round(measures[name], 3), "all": {k: round(v, 3) for k, v in measures.items()}}


def words_of(pieces):
    groups = []
    for i, piece in enumerate(pieces):
        if groups and not piece.startswith("▁") and not piece.startswith("<"):
            groups[-1][1] = i + 1
        else:
            groups.append([i, i + 1])
    return groups


def rollout(inspection, stack, part, size):
    """The product of the mean weights of all layers, half of each from the residual connection."""
    total = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    for layer in range(LAYERS):
        heads = [e["weights"] for e in inspection["attention"]
                 if (e["stack"], e["part"], e["layer"]) == (stack, part, layer)]
        mean = [[sum(h[i][j] for h in heads) / len(heads) for j in range(size)] for i in range(size)]
        mixed = [[0.5 * w + (0.5 if i == j else 0) for j, w in enumerate(row)] for i, row in enumerate(mean)]
        total = matmul(mixed, total)
    return total


def header(name, family, task, **other):
    return {"format": 1, "version": "0.1.0",
            "model": {"name": name, "family": family, "parameters": 25312, "width": WIDTH, "heads": HEADS,
                      "head_width": HEAD_WIDTH, "layers": {"encoder": LAYERS, "decoder": LAYERS},
                      "position": "sinusoidal", "norm": "post", "vocabulary": 20, **other}, "task": task}


def beam_tree():
    """Three hypotheses a step, candidates scored by hand."""
    rows = [[("▁The", -0.2, -1, "kept"), ("▁A", -1.9, -1, "kept"), ("▁Cat", -2.8, -1, "kept"),
             ("▁One", -4.0, -1, "dropped")],
            [("▁cat", -0.5, 0, "kept"), ("▁dog", -2.4, 0, "kept"), ("▁cat", -2.5, 1, "kept"), ("s", -3.9, 2, "dropped"),
             ("▁bed", -4.4, 0, "dropped")],
            [("▁sleep", -0.9, 0, "kept"), ("▁sits", -2.7, 0, "kept"), ("▁sleep", -3.0, 1, "kept"),
             ("▁sleep", -3.1, 2, "dropped")],
            [("s", -1.0, 0, "kept"), ("▁on", -2.9, 1, "kept"), ("ing", -3.2, 0, "kept"), ("s", -3.3, 2, "dropped")],
            [("▁on", -1.3, 0, "kept"), ("▁in", -2.6, 0, "kept"), ("</s>", -3.2, 0, "finished"),
             ("▁the", -3.6, 1, "dropped")],
            [("▁the", -1.4, 0, "kept"), ("▁bed", -3.1, 1, "kept"), ("▁a", -3.4, 0, "dropped"),
             ("▁the", -3.5, 1, "kept")],
            [("▁bed", -1.6, 0, "kept"), ("▁mat", -3.3, 0, "kept"), ("</s>", -3.6, 1, "finished"),
             ("▁bed", -4.0, 2, "dropped")],
            [("</s>", -1.7, 0, "finished"), (".", -3.9, 0, "dropped"), ("</s>", -4.1, 1, "finished")]]
    steps, previous, number, best = [], [], 1, []
    for row in rows:
        step, kept = [], []
        for rank, (piece, score, parent, state) in enumerate(row):
            node = {"id": number, "parent": previous[parent] if 0 <= parent < len(previous) else -1, "piece": piece,
                    "token": 10 + rank,
                    "score": score, "log_probability": round(-0.1 - rank * 0.8, 3), "state": state}
            if state == "dropped":
                node["why"] = f"rank {rank + 1}; the beam keeps 3"
            if state == "kept":
                kept.append(number)
            if rank == 0:
                best.append(number)
            step.append(node)
            number += 1
        steps.append(step)
        previous = kept
    return {"size": 3, "steps": steps, "best": best}


def translation(seed=7, sharpness=1.0, certainty=6.0, tensors=True):
    model = Model(seed, sharpness)
    source, target = [p for p, _ in SOURCE], [p for p, _ in TARGET]
    names = [n for _, n in TARGET]
    inputs = ["<s>"] + target[:-1]
    memory = model.stack("encoder", model.embed("encoder", [n for _, n in SOURCE]))
    # The decoder's input carries the meaning of the word that follows, as in a trained model.
    model.stack("decoder", model.embed("decoder", names), memory)
    positions = sinusoid(64, WIDTH)
    inspection = {
        **header("small", "transformer", "translate"),
        "text": {"source": "고양이는 침대에서 잔다", "target": "The cat sleeps on the bed"},
        "source": source, "source_ids": [5, 8, 13, 21, 34, 2], "target": target, "target_ids": list(range(10, 18)),
        "input": inputs, "input_ids": [1] + list(range(10, 17)),
        "words": {"source": words_of(source), "target": words_of(target), "input": words_of(inputs)},
        "given_target": False, "steps": model.steps(target, names, certainty), **model.inspection,
        "positions": {"kind": "sinusoidal", "rows": rounded(positions, 4),
                      "similarity": rounded([[cosine(a, b) for b in positions] for a in positions], 4)},
        "alignment": {"layer": LAYERS - 1, "heads": [0, 2]},
        "beam": beam_tree(), "truncated": {"source": False, "target": False},
    }
    inspection["rollout"] = [
        {"stack": "encoder", "part": "self_attention", "weights": rounded(rollout(inspection, "encoder",
            "self_attention", len(source)))},
        {"stack": "decoder", "part": "cross_attention", "weights": inspection["attention"][-1]["weights"]}]
    if not tensors:
        inspection["tensors"] = []
    return inspection


def continuation():
    model = Model(11)
    inputs = ["<s>", "▁let", "'", "s", "▁to", "▁go", "▁home"]
    target = inputs[1:] + ["</s>"]
    model.stack("decoder", model.embed("decoder", inputs))
    steps = model.steps(["▁the"] * len(target), target)
    return {**header("tiny-gpt", "gpt", "continue", layers={"decoder": LAYERS}), "text": {"target": "let's to go home"},
            "target": target,
            "input": inputs, "words": {"target": words_of(target), "input": words_of(inputs)}, "steps": steps,
            **model.inspection}


def masked():
    model = Model(12)
    inputs = ["[CLS]", "▁the", "▁[MASK]", "▁sleeps", "[SEP]"]
    model.stack("encoder", model.embed("encoder", inputs))
    steps = model.steps(["▁cat"], ["cat"])
    steps[0]["position"] = 2
    return {**header("tiny-bert", "bert", "fill", layers={"encoder": LAYERS}), "text": {"target": "the [MASK] sleeps"},
            "input": inputs,
            "words": {"input": words_of(inputs)}, "steps": steps, **model.inspection}


def recurrent():
    """A recurrent model with additive attention: a score is not a product of query and key."""
    rng = random.Random(21)
    rows = lambda count, width: [[rng.gauss(0, 1) for _ in range(width)] for _ in range(count)]
    query, key, value, (vector,) = rows(8, 12), rows(6, 12), rows(6, 12), rows(1, 12)
    scores = [[sum(v * math.tanh(a + b) for v, a, b in zip(vector, q, k)) for k in key] for q in query]
    weights = [softmax(row) for row in scores]
    place = {"stack": "decoder", "layer": 0, "part": "state_attention", "head": 0}
    taps = {"query": query, "key": key, "value": value, "scores": scores, "masked_scores": scores,
            "attention_context": matmul(weights, value)}
    full = translation(tensors=False)
    keep = ("format", "version", "text", "source", "target", "input", "words", "steps", "task", "beam")
    return {**{k: full[k] for k in keep}, "model": {"name": "rnn", "family": "rnn", "parameters": 9000},
            "attention": [{**place, "weights": rounded(weights)}],
            "tensors": [{"tap": tap, **place, "values": rounded(values)} for tap, values in taps.items()]}


def hostile():
    """Texts that try to break out of the page, change its direction or have no picture."""
    source = ["</script><script>alert(1)</script>", "<!--", "👩‍👩‍👧‍👦", "▁고양이", "\u202eabc\u202c", "שלום", "&lt;b&gt;",
              "\u0000\u0007", "<img src=x onerror=alert(1)>", "▁", "x" * 3000, "\u2028", "constructor", "__proto__"]
    target = ["▁𝒳", "<0xEA>", "<0xB0>", "<0x80>", "한", "\"'`${7*7}", "]]>", "</s>"]
    rng = random.Random(3)
    weights = lambda rows, columns: rounded([softmax([rng.gauss(0, 2) for _ in range(columns)]) for _ in range(rows)])
    return {**header("<b>bold</b>\u202e", "transformer", "translate"),
            "text": {"source": " ".join(source), "target": "</script>"},
            "source": source, "source_ids": list(range(len(source))), "target": target, "input": ["<s>"] + target[:-1],
            "words": {"source": words_of(source), "target": [[0, 99]], "input": "none"},
            "steps": [{"position": 0, "piece": "</script>", "id": 1, "probability": 0.5, "logit": 2.0,
                       "best": [{"piece": "<img src=x>", "id": 1, "probability": 0.5, "logit": 2.0}]}],
            "attention": [{"stack": "decoder", "layer": 0, "part": "cross_attention", "head": h,
                           "kind": {"name": "<i>", "measure": 0.5, "all": {"<i>": 0.5}},
                           "weights": weights(len(target), len(source))} for h in range(2)],
            "beam": {"size": 1, "steps": [[{"id": 1, "parent": 0, "piece": "</script>", "score": -1.0, "state": "kept",
                                            "why": "<b>"}]], "best": [1]},
            "truncated": {"source": True, "target": False}}


def many_words():
    """A text of 10,000 words of which the document shows no matrices."""
    source = [f"▁w{i}" for i in range(10000)]
    return {**header("long", "transformer", "translate"), "text": {"source": " ".join(source)[:40000],
        "target": "long"}, "source": source,
            "source_ids": list(range(10000)), "target": ["▁long", "</s>"], "input": ["<s>", "▁long"],
            "words": {"source": words_of(source), "target": [[0, 1], [1, 2]], "input": [[0, 1], [1, 2]]},
            "steps": translation(tensors=False)["steps"][:2], "truncated": {"source": True, "target": False}}


def packed_halves(rng, rows, columns, scale=1.0):
    block = b"".join(struct.pack("<e", rng.gauss(0, scale)) for _ in range(4096))
    begin = 2 * rng.randrange(2048)
    data = (block[begin:] + block * (rows * columns // 4096 + 1))[: rows * columns * 2]
    return {"shape": [rows, columns], "f16": base64.b64encode(data).decode()}


def packed_weights(rng, rows, columns, causal=False, sharpness=2.0):
    data = bytearray()
    for i in range(rows):
        scores = [rng.gauss(0, sharpness) + (3 if j == i - 1 else 0) if not causal or j <= i else -math.inf
                  for j in range(columns)]
        data += bytes(round(255 * w) for w in softmax(scores))
    return {"shape": [rows, columns], "u8": base64.b64encode(bytes(data)).decode(), "scale": 1 / 255}


def base_model():
    """A sentence of 40 words in a base model: 6 + 6 layers, 8 heads, width 512."""
    rng = random.Random(5)
    layers, heads, width, count = 6, 8, 512, 56
    stems = ["나무", "바다", "도서관", "학교", "기차", "생각", "번역", "모델", "문장", "단어"]
    source = [("▁" if i % 7 not in (2, 5) else "") + stems[i % 10] for i in range(count - 1)] + ["</s>"]
    target = [("▁" if i % 5 != 3 else "") + ["the", "tree", "train", "model", "think", "word"][i % 6]
              for i in range(count - 1)] + ["</s>"]
    inputs = ["<s>"] + target[:-1]
    attention, gradient, tensors, norms = [], [], [], []
    for stack, parts in (("encoder", ["self_attention"]), ("decoder", ["self_attention", "cross_attention"])):
        for layer in range(layers):
            for part in parts:
                for head in range(heads):
                    place = {"stack": stack, "layer": layer, "part": part, "head": head}
                    causal = stack == "decoder" and part == "self_attention"
                    attention.append({**place, "kind": {"name": "previous", "measure": 0.4,
                                                        "all": {"previous": 0.4, "broad": 0.3}},
                                      "weights": packed_weights(rng, count, count, causal)})
                    gradient.append({**place, "weights": packed_weights(rng, count, count, causal)})
                for tap in ("query", "key", "value", "norm_output"):
                    tensors.append({"tap": tap, "stack": stack, "layer": layer, "part": part,
                                    "values": packed_halves(rng, count, width)})
                numbers = lambda scale: [round(abs(rng.gauss(1, scale)), 4) for _ in range(count)]
                norms.append({"stack": stack, "layer": layer, "part": part,
                              "before": {"mean": numbers(0.1), "deviation": numbers(0.5)},
                              "after": {"mean": numbers(0.01), "deviation": numbers(0.01)},
                              "length": {"branch": numbers(1), "stream": numbers(1)}})
            tensors.append({"tap": "feed_forward", "stack": stack, "layer": layer, "part": "feed_forward",
                            "values": packed_halves(rng, count, width)})
            tensors.append({"tap": "residual_sum", "stack": stack, "layer": layer, "part": "feed_forward",
                            "values": packed_halves(rng, count, width)})
        tensors.append({"tap": "embedding", "stack": stack, "layer": -1, "part": "",
                        "values": packed_halves(rng, count, width)})
    small = translation(tensors=False)
    steps = [{**small["steps"][i % 8], "position": i} for i in range(count)]
    return {**header("base", "transformer", "translate", parameters=65000000, width=width, heads=heads, head_width=64,
                     layers={"encoder": layers, "decoder": layers}),
            "text": {"source": "".join(source).replace("▁", " ").strip(),
                     "target": "".join(target[:-1]).replace("▁", " ").strip()},
            "source": source, "source_ids": list(range(count)), "target": target, "target_ids": list(range(count)),
            "input": inputs,
            "input_ids": list(range(count)), "words": {"source": words_of(source), "target": words_of(target),
                                                       "input": words_of(inputs)},
            "steps": steps, "attention": attention, "gradient_weight": gradient, "tensors": tensors, "norms": norms,
            "rollout": [{"stack": "encoder", "part": "self_attention", "weights": packed_weights(rng, count, count)},
                        {"stack": "decoder", "part": "cross_attention", "weights": packed_weights(rng, count, count)}],
            "positions": {"kind": "sinusoidal", "rows": packed_halves(rng, 128, width),
                          "similarity": packed_halves(rng, 128, 128)},
            "beam": small["beam"]}


def checkpoints():
    """The same sentence at 20 checkpoints of a run, ever sharper and surer."""
    inspections, points = [], []
    for i in range(20):
        share = (i + 1) / 20
        one = translation(seed=7, sharpness=0.15 + 0.95 * share, certainty=1 + 6 * share, tensors=i == 19)
        one.pop("gradient_weight")
        if i < 19:
            one.pop("beam")
            one.pop("positions")
        if i < 8:
            one["text"] = {"source": one["text"]["source"], "target": ["the the the", "The The cat",
                "The cat the bed"][min(2, i // 3)]}
        inspections.append(one)
        points.append({"name": f"step-{(i + 1) * 100}", "step": (i + 1) * 100,
                       "loss": round(0.4 + 4.2 * math.exp(-4 * share), 3),
                       "metric": {"name": "bleu", "score": round(95 * share ** 2, 1)}})
    return {"inspections": inspections, "checkpoints": points}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    single = {"translation": translation, "continuation": continuation, "masked": masked, "recurrent": recurrent,
              "hostile": hostile,
              "many_words": many_words, "base": base_model}
    payloads = {name: {"inspections": [make()], "checkpoints": None} for name, make in single.items()}
    payloads["checkpoints"] = checkpoints()
    payloads["empty"] = {"inspections": [], "checkpoints": None}
    for name, payload in payloads.items():
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(payload, file, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
