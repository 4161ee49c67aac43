// One inspection of the document, with the questions that the views ask. Every part but the model,
// the task and the pieces may be absent.
import {visible, wordText} from "./format.js";
import {decodeMatrix, dot, joinWords, Matrix, meanOf, softmax} from "./matrix.js";

// The most pieces of a text that lists show; matrices show all, as they draw only what is visible.
export const mostListed = 400;

const partOrder = ["self_attention", "cross_attention", "state_attention"];

function placeKey(entry) {
  return `${entry.stack}/${entry.part}/${entry.layer}/${entry.head ?? ""}`;
}

function pieces(list) {
  return Array.isArray(list) ? list.map(visible) : [];
}

// The groups [begin, end) if they cover `count` pieces in order, otherwise each piece for itself.
function checkedGroups(groups, count) {
  const single = Array.from({length: count}, (_, i) => [i, i + 1]);
  if (!Array.isArray(groups)) return single;
  let next = 0;
  for (const group of groups) {
    if (!Array.isArray(group) || group[0] !== next || !(group[1] > next)) return single;
    next = group[1];
  }
  return next === count ? groups : single;
}

export class Inspection {
  constructor(raw) {
    this.raw = raw;
    this.model = raw.model || {};
    this.task = raw.task;
    this.source = pieces(raw.source);
    this.target = pieces(raw.target);
    this.input = pieces(raw.input);
    this.steps = Array.isArray(raw.steps) ? raw.steps : [];
    this.norms = Array.isArray(raw.norms) ? raw.norms : [];
    this.beam =
        raw.beam && Array.isArray(raw.beam.steps) && raw.beam.steps.length ? raw.beam : null;
    const words = raw.words || {};
    this.sides = {
      source: this.side(raw.source, this.source, raw.source_ids, words.source),
      target: this.side(raw.target, this.target, raw.target_ids, words.target),
      input: this.side(raw.input, this.input, raw.input_ids, words.input),
    };
    this.decoded = new Map();
    this.attention = new Map();
    this.gradient = new Map();
    this.tensors = new Map();
    for (const entry of raw.attention || []) this.attention.set(placeKey(entry), entry);
    for (const entry of raw.gradient_weight || []) this.gradient.set(placeKey(entry), entry);
    for (const entry of raw.tensors || []) {
      this.tensors.set(
          this.tensorKey(entry.tap, entry.stack, entry.layer, entry.part, entry.head), entry);
    }
  }

  side(raw, list, ids, groups) {
    const words = checkedGroups(groups, list.length);
    return {
      pieces: list,
      ids: Array.isArray(ids) ? ids : [],
      words,
      wordTexts: words.map(([begin, end]) => wordText((raw || []).slice(begin, end))),
      joined: words.some(([begin, end]) => end - begin > 1),
    };
  }

  tensorKey(tap, stack, layer, part, head) {
    return `${tap}/${stack ?? ""}/${layer ?? -1}/${part ?? ""}/${head ?? ""}`;
  }

  // Decodes each matrix once.
  matrix(owner, field) {
    if (!owner || !owner[field]) return null;
    if (!this.decoded.has(owner[field])) this.decoded.set(owner[field], decodeMatrix(owner[field]));
    return this.decoded.get(owner[field]);
  }

  // The kinds of attention in the order of the flow: [{stack, part, layers: [numbers]}].
  get parts() {
    if (this.knownParts) return this.knownParts;
    const found = new Map();
    for (const entry of this.attention.values()) {
      const key = `${entry.stack}/${entry.part}`;
      if (!found.has(key))
        found.set(key, {stack: entry.stack, part: entry.part, layers: new Set()});
      found.get(key).layers.add(entry.layer);
    }
    const rank = (p) => (p.stack === "encoder" ? 0 : 10) + partOrder.indexOf(p.part);
    this.knownParts =
        [...found.values()]
            .sort((a, b) => rank(a) - rank(b))
            .map(
                (p) =>
                    ({stack: p.stack, part: p.part, layers: [...p.layers].sort((a, b) => a - b)}));
    return this.knownParts;
  }

  findPart(stack, part) {
    return this.parts.find((p) => p.stack === stack && p.part === part) || null;
  }

  // The numbers of the heads of a layer.
  heads(stack, part, layer) {
    const numbers = [];
    for (const entry of this.attention.values()) {
      if (entry.stack === stack && entry.part === part && entry.layer === layer)
        numbers.push(entry.head);
    }
    return numbers.sort((a, b) => a - b);
  }

  headEntry(place) {
    return this.attention.get(placeKey(place)) || null;
  }

  // The heads that `head` stands for: a number; "mean", all heads of the layer; "align", those that
  // point best from the target to the source.
  headNumbers(place) {
    if (typeof place.head === "number") return [place.head];
    const heads = this.heads(place.stack, place.part, place.layer);
    return place.head === "align" ?
        heads.filter((head) => this.raw.alignment.heads.includes(head)) :
        heads;
  }

  // Whether the place has heads that align: in one layer of the cross-attention.
  aligns({stack, part, layer}) {
    const alignment = this.raw.alignment;
    return Boolean(alignment) && Array.isArray(alignment.heads) && alignment.layer === layer &&
        stack === "decoder" && part !== "self_attention" &&
        alignment.heads.some((head) => this.heads(stack, part, layer).includes(head));
  }

  // The softmax weights of a head, [query][key], or the mean of several heads.
  rawWeights(place) {
    return this.weightsFrom(this.attention, place);
  }

  weightsFrom(entries, place) {
    if (typeof place.head === "number") return this.matrix(entries.get(placeKey(place)), "weights");
    const key = `mean of ${entries === this.attention}/${placeKey(place)}`;
    if (!this.decoded.has(key)) {
      const all = this.headNumbers(place)
                      .map((head) => this.weightsFrom(entries, {...place, head}))
                      .filter(Boolean);
      this.decoded.set(key, all.length ? meanOf(all) : null);
    }
    return this.decoded.get(key);
  }

  rollout(stack, part) {
    const entry = (this.raw.rollout || []).find((r) => r.stack === stack && r.part === part);
    return this.matrix(entry, "weights");
  }

  // The ways in which the weights of a place can be shown.
  weightKinds(place) {
    const kinds = ["raw"];
    if (this.rollout(place.stack, place.part)) kinds.push("rollout");
    const [head] = this.headNumbers(place);
    if (this.gradient.has(placeKey({...place, head}))) kinds.push("gradient");
    return kinds;
  }

  weights(place, kind) {
    if (kind === "rollout") return this.rollout(place.stack, place.part) || this.rawWeights(place);
    if (kind === "gradient")
      return this.weightsFrom(this.gradient, place) || this.rawWeights(place);
    return this.rawWeights(place);
  }

  // What the rows and columns of an attention matrix are.
  axes(stack, part) {
    const input = this.sides.input;
    if (part === "self_attention") {
      const own = stack === "encoder" && this.source.length ? this.sides.source : input;
      return {queries: own, keys: own};
    }
    const rows =
        this.target.length && this.target.length >= input.pieces.length ? this.sides.target : input;
    return {queries: rows, keys: this.sides.source};
  }

  isCausal(stack, part) {
    return stack === "decoder" && part === "self_attention";
  }

  // A matrix of weights with its labels, by tokens or joined into words.
  shown(place, kind, unit) {
    const matrix = this.weights(place, kind);
    if (!matrix) return null;
    const {queries, keys} = this.axes(place.stack, place.part);
    const fits = unit === "words" && matrix.rows === last(queries.words) &&
        matrix.columns === last(keys.words);
    if (!fits) {
      return {
        matrix,
        rows: padded(queries.pieces, matrix.rows),
        columns: padded(keys.pieces, matrix.columns),
        words: false
      };
    }
    const key = `words of ${kind}/${placeKey(place)}`;
    if (!this.decoded.has(key)) this.decoded.set(key, joinWords(matrix, queries.words, keys.words));
    return {
      matrix: this.decoded.get(key),
      rows: queries.wordTexts,
      columns: keys.wordTexts,
      words: true
    };
  }

  get hasWords() {
    return Object.values(this.sides).some((side) => side.joined);
  }

  // The values of a tap. A per-head tap that is stored for all heads side by side is cut.
  tensor(tap, stack, layer, part, head) {
    const own = this.tensors.get(this.tensorKey(tap, stack, layer, part, head));
    if (own) return this.matrix(own, "values");
    if (head === undefined || head === null) return null;
    const whole = this.tensor(tap, stack, layer, part);
    const width = this.model.head_width;
    if (!whole || !width || whole.columns % width !== 0) return null;
    // Grouped heads share the keys and values of one group.
    const groups = whole.columns / width;
    const heads = this.heads(stack, part, layer).length || this.model.heads;
    if (heads % groups !== 0) return null;
    const group = Math.floor(head / (heads / groups));
    const key = `${this.tensorKey(tap, stack, layer, part)} of group ${group}`;
    if (!this.decoded.has(key))
      this.decoded.set(key, whole.slice(group * width, (group + 1) * width));
    return this.decoded.get(key);
  }

  // A tap of all heads: stored whole, or its heads side by side.
  joinedTensor(tap, stack, layer, part) {
    const whole = this.tensor(tap, stack, layer, part);
    if (whole) return whole;
    const all = this.heads(stack, part, layer)
                    .map((head) => this.tensors.get(this.tensorKey(tap, stack, layer, part, head)))
                    .filter(Boolean)
                    .map((entry) => this.matrix(entry, "values"))
                    .filter(Boolean);
    if (!all.length) return null;
    const width = all[0].columns;
    const joined = new Matrix(all[0].rows, width * all.length);
    all.forEach((matrix, i) => {
      for (let row = 0; row < joined.rows; ++row) joined.row(row).set(matrix.row(row), i * width);
    });
    return joined;
  }

  // Everything that the arithmetic of a head needs; null if queries, keys or weights are missing,
  // or if the scores that they give do not lead to the weights of the document.
  arithmetic(place) {
    if (typeof place.head !== "number") return null;
    const key = `arithmetic of ${placeKey(place)}`;
    if (this.decoded.has(key)) return this.decoded.get(key);
    const of = (tap) => this.tensor(tap, place.stack, place.layer, place.part, place.head);
    const [query, keys, value, weights] =
        [of("query"), of("key"), of("value"), this.rawWeights(place)];
    let result = null;
    if (query && keys && weights && query.rows === weights.rows && keys.rows === weights.columns &&
        query.columns === keys.columns) {
      result = {
        query,
        keys,
        value: value && value.rows === keys.rows ? value : null,
        weights,
        scores: of("scores"),
        scaled: of("scaled_scores"),
        biased: of("biased_scores"),
        masked: of("masked_scores"),
        context: of("attention_context")
      };
      this.completeScores(place, result);
      if (!this.agrees(result)) result = null;
    }
    this.decoded.set(key, result);
    return result;
  }

  // Scores that the document leaves out follow from Q and K. Sets isDot: whether the scores are dot
  // products, and isScaled: whether something lies between them and the softmax.
  completeScores(place, a) {
    const {rows, columns} = a.weights;
    const products = new Matrix(rows, columns);
    for (let r = 0; r < rows; ++r) {
      for (let c = 0; c < columns; ++c)
        products.values[r * columns + c] = dot(a.query.row(r), a.keys.row(c));
    }
    a.isDot = !a.scores || near(products, a.scores);
    a.scores = a.scores || products;
    if (!a.scaled) {
      // Most models divide by √d, some (T5, additive attention) don't.
      const scales = [1 / Math.sqrt(a.query.columns), 1];
      const versions = scales.map(
          (scale) => new Matrix(rows, columns, a.scores.values.map((score) => score * scale)));
      a.scaled = versions.find((scaled) => this.agrees({
        ...a,
        masked: this.masked(place, scaled),
      })) ||
          versions[0];
    }
    a.scale = ratio(a.scaled, a.scores);
    a.isScaled = Math.abs(a.scale - 1) > 1e-4 || Boolean(a.biased);
    a.masked = a.masked || this.masked(place, a.biased || a.scaled);
  }

  // A copy with −∞ where a query cannot look.
  masked(place, scores) {
    const {rows, columns} = scores;
    const masked = new Matrix(rows, columns, scores.values.slice());
    if (!this.isCausal(place.stack, place.part)) return masked;
    for (let r = 0; r < rows; ++r) {
      for (let c = r + 1; c < columns; ++c) masked.values[r * columns + c] = -Infinity;
    }
    return masked;
  }

  agrees(a) {
    const {rows, columns} = a.weights;
    for (const row of new Set([0, rows >> 1, rows - 1])) {
      if (row < 0) return false;
      const weights = softmax(a.masked.row(row)).weights;
      for (let c = 0; c < columns; ++c) {
        if (!(Math.abs(weights[c] - a.weights.at(row, c)) < 0.03)) return false;
      }
    }
    return true;
  }

  get positions() {
    const positions = this.raw.positions;
    if (!positions) return null;
    const rows = this.matrix(positions, "rows");
    const similarity = this.matrix(positions, "similarity");
    const bias = Array.isArray(positions.bias) ? positions.bias :
        positions.bias                         ? [positions.bias] :
                                                 [];
    // One matrix, or a list with one for each head.
    const perHead =
        bias.length && Array.isArray(bias[0]) && !Array.isArray(bias[0][0]) ? [bias] : bias;
    const biases = perHead.map((one) => decodeMatrix(one.values || one)).filter(Boolean);
    if (!rows && !similarity && !biases.length) return null;
    return {kind: positions.kind, rows, similarity, biases};
  }
}

function last(groups) {
  return groups.length ? groups[groups.length - 1][1] : 0;
}

function padded(labels, count) {
  return labels.length === count ? labels :
                                   Array.from({length: count}, (_, i) => labels[i] ?? `${i + 1}`);
}

// Whether the finite values of two matrices differ by at most 2% of the largest one.
function near(a, b) {
  const limit = 0.02 * Math.max(b.largest(), 1e-6);
  return a.values.every(
      (value, i) => !(Math.abs(value - b.values[i]) > limit) || !Number.isFinite(b.values[i]));
}

// The factor between two matrices, measured where the values are largest.
function ratio(scaled, scores) {
  let at = 0;
  for (let i = 0; i < scores.values.length; ++i) {
    if (Math.abs(scores.values[i]) > Math.abs(scores.values[at])) at = i;
  }
  return scores.values[at] ? scaled.values[at] / scores.values[at] : 1;
}

// The inspections of the payload and their checkpoints.
export function readPayload(text) {
  const payload = JSON.parse(text);
  const inspections = (payload.inspections || []).map((raw) => new Inspection(raw));
  const checkpoints = Array.isArray(payload.checkpoints) &&
          payload.checkpoints.length === inspections.length && inspections.length > 1 ?
      payload.checkpoints :
      null;
  return {inspections, checkpoints};
}
