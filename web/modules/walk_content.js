// What the stages of the walk show: the vectors of all words as a picture, and the lines of the
// notes for the word that is chosen.
import {bar, choice} from "./controls.js";
import {h, pieceSpan, textSpan} from "./dom.js";
import {number, vectorText} from "./format.js";
import {heatmap, strip} from "./heatmap.js";
import {mostListed} from "./inspection.js";
import {t} from "./language.js";
import {headName} from "./place.js";
import {sideOfStack} from "./view_norms.js";
import {bestBars, stepStrip} from "./view_words.js";

function indices(count) {
  return Array.from({length: count}, (_, i) => String(i + 1));
}

function tokenBoxes(side, withIds) {
  const shown = side.pieces.slice(0, mostListed);
  return h(
      "div", {},
      h("ol", {class: "token-boxes"},
        shown.map(
            (piece, i) =>
                h("li", {}, h("span", {class: "token-text"}, pieceSpan(piece)),
                  withIds ? h("span", {class: "token-id", text: String(side.ids[i] ?? "?")}) :
                            null))),
      side.pieces.length > shown.length ? h("p", {
        class: "note",
        text: t("first.tokens", {count: shown.length, all: side.pieces.length})
      }) :
                                          null);
}

// The vectors of all words, and that of the chosen one in numbers. `axis`: whether the words are
// those of the queries or of the keys.
function vectors(app, name, matrix, side, {bands, className = "", axis = "query"} = {}) {
  const chosen = () => Math.min(Math.max(app.state[axis], 0), matrix.rows - 1);
  const labels = side.pieces.length === matrix.rows ? side.pieces : indices(matrix.rows);
  const line = h("p", {class: "vector-line"});
  const write = (at) => line.replaceChildren(
      textSpan(labels[at], `aside ${className}`), " → ",
      h("span", {class: "figure", text: vectorText(matrix.row(at), 8)}),
      h("span", {class: "aside", text: ` ${t("numbers.count", {count: matrix.columns})}`}));
  write(chosen());
  const map = heatmap({
    matrix,
    rows: labels,
    columns: indices(matrix.columns),
    name,
    key: `vectors.${name}`,
    signed: true,
    cell: [2, 26],
    cellHeight: matrix.rows > 20 ? 12 : 20,
    height: 360,
    bands,
    selected: () => ({row: app.state[axis]}),
    onPoint: (row) => app.point({[axis]: row}),
    describe: (r, c) => `${labels[r]}, ${t("dimension")} ${c + 1}: ${number(matrix.at(r, c), 3)}`,
  });
  app.onPoint(() => {
    map.update();
    write(chosen());
  });
  return h("div", {class: "vectors"}, h("h5", {text: name}), line, map.element);
}

function headChoice(app, stage) {
  const heads = app.document.heads(stage.stack, stage.part, stage.layer);
  if (heads.length < 2) return null;
  return choice({
    name: t("head"),
    key: "walk.head",
    value: headOf(app, stage),
    choices: heads.map((head) => ({value: head, text: String(head + 1), title: headName(head)})),
    onChange: (head) => app.set({head}),
  });
}

function headOf(app, stage) {
  const heads = app.document.heads(stage.stack, stage.part, stage.layer);
  return heads.includes(app.state.head) ? app.state.head : heads[0];
}

function placeOf(app, stage) {
  return {stack: stage.stack, layer: stage.layer, part: stage.part, head: headOf(app, stage)};
}

// A matrix of scores or weights beside the lines of the chosen query.
function cells(app, stage, {matrix, signed, masked, digits = 2, line, open, largest}) {
  const {queries, keys} = app.document.axes(stage.stack, stage.part);
  const rows = queries.pieces.length === matrix.rows ? queries.pieces : indices(matrix.rows);
  const columns = keys.pieces.length === matrix.columns ? keys.pieces : indices(matrix.columns);
  const lines = h("ol", {class: "score-lines"});
  const write = () => {
    const row = Math.min(Math.max(app.state.query, 0), matrix.rows - 1);
    const shown = Math.min(matrix.columns, 60);
    const items = [];
    for (let column = 0; column < shown; ++column) items.push(line(row, column, rows, columns));
    if (matrix.columns > shown)
      items.push(
          h("li", {class: "note", text: t("first.tokens", {count: shown, all: matrix.columns})}));
    lines.replaceChildren(...items);
  };
  write();
  const map = heatmap({
    matrix,
    rows,
    columns,
    name: t(`stage.${stage.id}`),
    key: `cells.${stage.id}`,
    signed,
    masked,
    digits,
    height: 440,
    largest,
    selected: () => ({row: app.state.query, column: app.state.key}),
    onPoint: (query, key) => app.point({query, key}),
    onOpen: open ?
        (query, key) => {
          app.point({query, key});
          app.set({...placeOf(app, stage), view: "arithmetic", unit: "tokens", returnTo: "walk"});
        } :
        null,
    describe: (r, c) => `${rows[r]} → ${columns[c]}: ${
        masked && masked(r, c) ? t("masked") : number(matrix.at(r, c), 3)}`,
  });
  app.onPoint(() => {
    map.update();
    write();
  });
  return h(
      "div", {class: "two-panes"}, lines,
      h("div", {}, map.element, open ? h("p", {class: "note", text: t("matrix.how.open")}) : null));
}

function scoreLine(value, masked) {
  return (row, column, rows, columns) =>
             h("li", {class: masked && masked(row, column) ? "masked" : ""},
               h("span", {class: "q", text: `Q${row + 1}`}), " · ",
               h("span", {class: "k", text: `K${column + 1}`}), " → ", h("b", {
                 class: "figure",
                 text: masked && masked(row, column) ? "−∞" : number(value(row, column))
               }),
               h("span", {class: "aside"}, " ← ",
                 t("between", {query: rows[row], key: columns[column]})));
}

function causalMask(row, column) {
  return column > row;
}

// ○ and ×, as the notes draw a mask.
function maskGrid(app, stage) {
  const a = app.document.arithmetic(placeOf(app, stage));
  return cells(app, stage, {
    matrix: a.masked,
    signed: true,
    masked: causalMask,
    open: true,
    line: scoreLine((r, c) => a.masked.at(r, c), causalMask)
  });
}

function softmaxCells(app, stage) {
  const place = placeOf(app, stage);
  const matrix = app.document.rawWeights(place);
  const masked = app.document.isCausal(stage.stack, stage.part) ? causalMask : null;
  return cells(app, stage, {
    matrix,
    masked,
    largest: 1,
    open: app.document.arithmetic(place) !== null,
    line: (row, column, rows, columns) => {
      const values = matrix.row(row);
      if (masked && masked(row, column)) {
        return h(
            "li", {class: "masked"}, textSpan(rows[row]), " → ", textSpan(columns[column]),
            `: (0) ${t("masked")}`);
      }
      const most = values.every((value) => value <= values[column]);
      return h(
          "li", {class: most ? "most" : ""}, textSpan(rows[row], "q"), " → ",
          textSpan(columns[column], "k"), ": ",
          h("b", {class: "figure", text: `(${number(values[column])})`}), bar(values[column]),
          most ? h("span", {class: "aside", text: t("most")}) : null);
    },
  });
}

function contextLines(app, stage) {
  const a = app.document.arithmetic(placeOf(app, stage));
  const {keys, queries} = app.document.axes(stage.stack, stage.part);
  const box = h("div", {class: "sum-lines"});
  const largest = a.value.largest();
  const write = () => {
    const row = Math.min(Math.max(app.state.query, 0), a.weights.rows - 1);
    const weights = a.weights.row(row);
    const order = Array.from(weights.keys()).filter((i) => weights[i] >= 0.0005);
    const sum = new Float32Array(a.value.columns);
    weights.forEach((weight, i) => a.value.row(i).forEach((value, d) => {
      sum[d] += weight * value;
    }));
    box.replaceChildren(
        h("p", {}, "Context = ",
          h("span", {class: "aside"}, "← ",
            t("context.of", {word: queries.pieces[row] ?? row + 1}))),
        ...order.map(
            (i) =>
                h("div", {class: "vector-row"},
                  h("span", {class: "vector-name"}, h("b", {text: number(weights[i])}), " × ",
                    h("span", {class: "v", text: `V${i + 1}`}), " ",
                    textSpan(keys.pieces[i] ?? "", "aside")),
                  strip(a.value.row(i), largest),
                  h("span", {class: "figure", text: vectorText(a.value.row(i), 4)}))),
        h("div", {class: "vector-row total"}, h("span", {class: "vector-name", text: "= Context"}),
          strip(sum, largest), h("span", {class: "figure", text: vectorText(sum, 4)})));
  };
  write();
  app.onPoint(write);
  return box;
}

function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((v) => (v - middle) ** 2)));
}

// Mean and deviation of the chosen word before and after a norm.
function normNumbers(app, before, after) {
  const box = h("div", {class: "norm-numbers"});
  const write = () => {
    const lines = [[t("before"), before], [t("after"), after]]
                      .filter(([, matrix]) => matrix)
                      .map(([name, matrix]) => {
                        const row =
                            matrix.row(Math.min(Math.max(app.state.query, 0), matrix.rows - 1));
                        return h(
                            "tr", {}, h("th", {scope: "row", text: name}),
                            h("td", {class: "num", text: number(mean(row), 3)}),
                            h("td", {class: "num", text: number(deviation(row), 3)}));
                      });
    box.replaceChildren(
        h("table", {class: "sums"},
          h("thead", {},
            h("tr", {}, h("td", {}), h("th", {scope: "col", class: "num", text: t("norms.mean")}),
              h("th", {scope: "col", class: "num", text: t("norms.deviation")}))),
          h("tbody", {}, lines)));
  };
  write();
  app.onPoint(write);
  return box;
}

// x + f(x) of the chosen word, as the notes write it: [2.5, −2.1] + [1.87, 1.09].
function sumLine(app, stream, branch, sum) {
  const line = h("p", {class: "result wrap"});
  const write = () => {
    const row = Math.min(Math.max(app.state.query, 0), sum.rows - 1);
    const part = (matrix) => h("span", {class: "figure", text: vectorText(matrix.row(row), 3)});
    const before = stream ||
        (branch ? {row: (r) => sum.row(r).map((value, i) => value - branch.row(r)[i])} : null);
    line.replaceChildren(
        ...(before && branch ? [part(before), " + ", part(branch), " = "] : []), part(sum));
  };
  write();
  app.onPoint(write);
  return line;
}

export function stageContent(app, stage) {
  const {document: doc} = app;
  const {id, stack, layer, part} = stage;
  const side = stack ? sideOfStack(doc, stack) : null;
  const whole = (tap) => doc.tensor(tap, stack, layer, part);
  const stackTap = (tap) => doc.tensor(tap, stack);
  if (id === "tokens" || id === "ids") return [tokenBoxes(side, id === "ids")];
  if (["token_embedding", "position", "embedding", "stack_output"].includes(id))
    return [vectors(app, t(`stage.${id}`), stackTap(id), side)];
  if (id === "qkv") {
    const a = doc.arithmetic(placeOf(app, stage));
    const {queries, keys} = doc.axes(stack, part);
    const axis = keys === queries ? "query" : "key";
    return [
      headChoice(app, stage),
      h("div", {class: "qkv"}, vectors(app, t("query"), a.query, queries, {className: "q"}),
        vectors(app, t("key"), a.keys, keys, {className: "k", axis}),
        a.value ? vectors(app, t("value"), a.value, keys, {className: "v", axis}) : null)
    ];
  }
  if (id === "scores" || id === "scaled") {
    const a = doc.arithmetic(placeOf(app, stage));
    const matrix = id === "scores" ? a.scores : a.biased || a.scaled;
    return [
      headChoice(app, stage),
      cells(
          app, stage,
          {matrix, signed: true, open: true, line: scoreLine((r, c) => matrix.at(r, c))})
    ];
  }
  if (id === "mask") return [headChoice(app, stage), maskGrid(app, stage)];
  if (id === "softmax") return [headChoice(app, stage), softmaxCells(app, stage)];
  if (id === "context") return [headChoice(app, stage), contextLines(app, stage)];
  if (id === "heads") {
    const matrix = doc.joinedTensor("attention_context", stack, layer, part);
    const count = doc.heads(stack, part, layer).length || 1;
    const width = matrix.columns / count;
    const bands =
        Number.isInteger(width) ? Array.from({length: count - 1}, (_, i) => (i + 1) * width) : [];
    return [vectors(app, t("stage.heads"), matrix, sideOfStack(doc, stack), {bands})];
  }
  if (id === "projection")
    return [vectors(app, t("stage.projection"), whole("attention_output"), side)];
  if (id === "feed_forward") {
    return [
      whole("feed_forward_hidden") ? vectors(app, t("hidden"), whole("feed_forward_hidden"), side) :
                                     null,
      whole("feed_forward") ? vectors(app, t("sub.feed_forward"), whole("feed_forward"), side) :
                              null
    ];
  }
  if (["add", "norm", "add_norm"].includes(id)) {
    const sum = id === "norm" ? null : whole("residual_sum");
    const normed = id === "add" ? null : whole("norm_output");
    const branch = whole(part === "feed_forward" ? "feed_forward" : "attention_output");
    return [
      sum ? sumLine(app, null, branch, sum) : null,
      sum && normed ? normNumbers(app, sum, normed) : null,
      sum ? vectors(app, t("residual.sum"), sum, side) : null,
      normed ? vectors(app, t("norm.output"), normed, side) : null
    ];
  }
  if (id === "logits") {
    const at = Math.min(app.state.step, doc.steps.length - 1);
    return [stepStrip(app, at), bestBars(doc.steps[at])];
  }
  return [h("p", {class: "written"}, h("bdi", {text: app.targetText()}))];
}
