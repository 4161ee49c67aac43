// The arithmetic of one cell, with every term, in the boxes of the notes.
import {arrowDown, bar, noteBox, select, tokenStrip} from "./controls.js";
import {h, textSpan} from "./dom.js";
import {number, percent, vectorText} from "./format.js";
import {strip} from "./heatmap.js";
import {t} from "./language.js";
import {dot, softmax} from "./matrix.js";
import {currentPlace, placeControls, placeName, unitControl} from "./place.js";

const mostTerms = 1024;

function vectorRow(label, className, values, largest) {
  return h(
      "div", {class: "vector-row"}, h("span", {class: `vector-name ${className}`}, label),
      strip(values, largest), h("span", {class: "figure", text: vectorText(values)}));
}

// q·k: every product, and their sum.
function productBox(a, query, key, names) {
  const q = a.query.row(query);
  const k = a.keys.row(key);
  const largest = Math.max(a.query.largest(), a.keys.largest());
  const terms = h("ol", {class: "terms", "aria-label": t("terms")});
  for (let i = 0; a.isDot && i < Math.min(q.length, mostTerms); ++i) {
    terms.append(
        h("li", {}, h("span", {class: "q", text: number(q[i])}), " × ",
          h("span", {class: "k", text: number(k[i])}), " = ", h("b", {text: number(q[i] * k[i])})));
  }
  const sum = a.isDot ? dot(q, k) : a.scores.at(query, key);
  return noteBox(
      t("box.scores"), a.isDot ? null : h("p", {class: "note", text: t("about.additive")}),
      vectorRow(`Q${query + 1}`, "q", q, largest), vectorRow(`K${key + 1}`, "k", k, largest),
      a.isDot ? terms : null,
      h("p", {class: "result"}, h("span", {class: "q", text: `Q${query + 1}`}),
        a.isDot ? " · " : ", ", h("span", {class: "k", text: `K${key + 1}`}), " → ",
        h("b", {text: number(sum, 3)}), h("span", {class: "aside"}, " ← ", t("between", names))));
}

function scaleBox(a, query, key) {
  const width = a.query.columns;
  const score = a.scores.at(query, key);
  const usual = Math.abs(a.scale - 1 / Math.sqrt(width)) < 1e-3;
  const biased = a.biased ? a.biased.at(query, key) : null;
  const scaled = a.scaled.at(query, key);
  return noteBox(
      t("box.scaled"),
      h("p", {class: "result"}, number(score, 3),
        usual ? ` ÷ √${width} = ${number(score, 3)} ÷ ${number(Math.sqrt(width), 3)} = ` :
                ` × ${number(a.scale, 4)} = `,
        h("b", {text: number(scaled, 3)})),
      biased === null ? null :
                        h("p", {class: "result"},
                          `${number(scaled, 3)} + ${t("bias")} ${number(biased - scaled, 3)} = `,
                          h("b", {text: number(biased, 3)})),
      h("p", {class: "note", text: t("about.scaled")}));
}

// The softmax of the query's row: one line for each key.
function softmaxBox(a, query, key, labels, onKey) {
  const row = a.masked.row(query);
  const {largest, exponentials, sum, weights} = softmax(row);
  const most = Math.max(...weights);
  const body = h("tbody");
  row.forEach((score, i) => {
    const masked = score === -Infinity;
    body.append(h(
        "tr", {class: i === key ? "chosen" : "", "aria-selected": String(i === key)},
        h("th", {scope: "row"},
          h("button",
            {type: "button", class: "plain", data: {key: `soft.${i}`}, on: {click: () => onKey(i)}},
            h("span", {class: "k", text: `K${i + 1} `}), textSpan(labels[i]))),
        h("td", {text: number(score, 3)}),
        h("td", {text: masked ? "0" : number(exponentials[i], 4)}),
        h("td", {}, h("b", {text: number(weights[i], 3)})),
        h("td", {class: "bar-cell"},
          masked ? h("span", {class: "aside", text: t("masked")}) : bar(weights[i]),
          weights[i] === most ? h("span", {class: "aside", text: t("most")}) : null)));
  });
  return noteBox(
      t("box.softmax"),
      h("p", {class: "note", text: t("about.softmax.terms", {largest: number(largest, 3)})}),
      h("div",
        {class: "table-scroll", tabindex: "0", role: "region", "aria-label": t("box.softmax")},
        h("table", {class: "sums"},
          h("thead", {},
            h("tr", {}, h("th", {scope: "col", text: t("column.key")}),
              h("th", {scope: "col", text: t("column.score")}),
              h("th", {scope: "col", text: `e^(x − ${number(largest, 2)})`}),
              h("th", {scope: "col", text: t("column.weight")}), h("td", {}))),
          body,
          h("tfoot", {},
            h("tr", {}, h("th", {scope: "row", text: t("sum")}), h("td", {}),
              h("td", {text: number(sum, 4)}),
              h("td", {text: number(weights.reduce((x, y) => x + y, 0), 3)}), h("td", {}))))),
      h("p", {class: "result"}, `${number(exponentials[key], 4)} ÷ ${number(sum, 4)} = `,
        h("b", {text: number(weights[key], 4)}), h("span", {
          class: "aside",
          text: ` (${t("document.says", {value: number(a.weights.at(query, key), 4)})})`
        })));
}

// Σ w·v: vectors, and every term of one dimension.
function contextBox(app, a, query, labels) {
  const weights = a.weights.row(query);
  const value = a.value;
  const largest = value.largest();
  const dimension = Math.min(app.state.dimension, value.columns - 1);
  const result = Array.from({length: value.columns}, (_, d) => {
    let sum = 0;
    for (let i = 0; i < value.rows; ++i) sum += weights[i] * value.at(i, d);
    return sum;
  });
  const lines = h("div", {class: "sum-lines"});
  const terms = h("ol", {class: "terms", "aria-label": t("terms")});
  for (let i = 0; i < value.rows; ++i) {
    if (weights[i] === 0) continue;
    lines.append(
        h("div", {class: "vector-row"},
          h("span", {class: "vector-name"}, h("b", {text: number(weights[i], 3)}), " × ",
            h("span", {class: "v", text: `V${i + 1}`}), " ", textSpan(labels[i], "aside")),
          strip(value.row(i), largest),
          h("span", {class: "figure", text: vectorText(value.row(i))})));
    terms.append(
        h("li", {}, number(weights[i], 3), " × ",
          h("span", {class: "v", text: number(value.at(i, dimension))}), " = ",
          h("b", {text: number(weights[i] * value.at(i, dimension), 3)})));
  }
  const given =
      a.context && a.context.rows === a.weights.rows && a.context.columns === value.columns ?
      a.context.at(query, dimension) :
      null;
  const chooser = select({
    name: t("dimension"),
    key: "dimension",
    value: dimension,
    choices: Array.from({length: value.columns}, (_, d) => ({value: d, text: String(d + 1)})),
    onChange: (d) => app.set({dimension: d}),
  });
  return noteBox(
      t("box.context"), h("p", {class: "note", text: t("about.context")}),
      h("p", {text: t("context.is")}), lines,
      h("div", {class: "vector-row total"}, h("span", {class: "vector-name", text: "= Context"}),
        strip(result, largest), h("span", {class: "figure", text: vectorText(result)})),
      chooser, terms,
      h("p", {class: "result"}, t("sum"), " = ", h("b", {text: number(result[dimension], 3)}),
        given === null ?
            null :
            h("span",
              {class: "aside", text: ` (${t("document.says", {value: number(given, 3)})})`})));
}

// A cell of words: the weights of their pieces.
function wordBox(app, place, query, key) {
  const doc = app.document;
  const matrix = doc.rawWeights(place);
  const {queries, keys} = doc.axes(place.stack, place.part);
  const [rowBegin, rowEnd] = queries.words[query];
  const [columnBegin, columnEnd] = keys.words[key];
  const lines = h("div", {class: "sum-lines"});
  let total = 0;
  for (let r = rowBegin; r < rowEnd; ++r) {
    const parts = [];
    let sum = 0;
    for (let c = columnBegin; c < columnEnd; ++c) {
      sum += matrix.at(r, c);
      parts.push(number(matrix.at(r, c), 3));
    }
    total += sum;
    lines.append(
        h("p", {class: "result"}, textSpan(queries.pieces[r], "q"), " → ",
          textSpan(keys.pieces.slice(columnBegin, columnEnd).join(" + "), "k"), ": ",
          parts.join(" + "), " = ", h("b", {text: number(sum, 3)})));
  }
  const rows = rowEnd - rowBegin;
  return noteBox(
      t("box.words"), h("p", {class: "note", text: t("words.how")}), lines,
      h("p", {class: "result"}, t("mean"), ` = ${number(total, 3)} ÷ ${rows} = `,
        h("b", {text: percent(total / rows)})));
}

export const arithmeticView = {
  id: "arithmetic",
  available: (app) => app.document.parts.some(
      (p) => p.layers.some(
          (layer) => app.document.heads(p.stack, p.part, layer)
                         .some(
                             (head) => app.document.tensors.size &&
                                 app.document.tensor("query", p.stack, layer, p.part, head)))),
  render(app) {
    const {document: doc, state} = app;
    const place = currentPlace(app);
    [place.head] = doc.headNumbers(place);
    const controls =
        h("div", {class: "controls"}, placeControls(app, place.head), unitControl(app));
    const root =
        h("div", {class: "view-arithmetic"},
          state.returnTo ? h("button", {
            type: "button",
            class: "back",
            data: {key: "back"},
            text: `← ${t(`view.${state.returnTo}`)}`,
            on: {click: () => app.set({view: state.returnTo, returnTo: null})},
          }) :
                           null,
          controls, h("p", {class: "lead", text: t("about.arithmetic")}));
    const shown = doc.shown(place, "raw", state.unit);
    if (!shown) return root;
    const query = Math.min(Math.max(state.query, 0), shown.matrix.rows - 1);
    const allowed =
        doc.isCausal(place.stack, place.part) && !shown.words ? query : shown.matrix.columns - 1;
    const key = Math.min(state.key >= 0 ? state.key : strongest(shown.matrix.row(query)), allowed);
    const change = (patch) => {
      if (patch.query === query || patch.key === key) return;
      app.set({query, key, ...patch});
    };
    const strips =
        [
          [t("query"), "query", shown.rows, query, (i) => change({query: i})],
          [t("key"), "key", shown.columns, key, (i) => change({key: i})],
        ]
            .map(
                ([name, id, texts, selected, onPoint]) =>
                    h("div", {class: `pick pick-${id}`},
                      h("span", {class: "control-name", text: name}),
                      clickStrip({name, key: `pick.${id}`, texts, selected, onPoint})));
    root.append(h("section", {class: "panel picks"}, strips));
    root.append(h("h3", {text: placeName(place)}));
    const boxes = h("div", {class: "boxes"});
    root.append(boxes);
    if (shown.words) {
      boxes.append(wordBox(app, place, query, key));
      return root;
    }
    const a = doc.arithmetic(place);
    if (!a) {
      boxes.append(h("p", {class: "note", text: t("no.arithmetic")}));
      return root;
    }
    boxes.append(
        productBox(a, query, key, {query: shown.rows[query], key: shown.columns[key]}), arrowDown(),
        ...(a.isScaled ? [scaleBox(a, query, key), arrowDown()] : []),
        softmaxBox(a, query, key, shown.columns, (i) => change({key: i})));
    if (a.value)
      boxes.append(
          arrowDown(t("focus.of", {n: query + 1})), contextBox(app, a, query, shown.columns),
          arrowDown(), h("p", {class: "next-layer", text: t("to.next")}));
    return root;
  },
};

// A strip whose choice changes by click, Enter or arrow keys, not by hovering: the view is rebuilt.
function clickStrip(options) {
  const made = tokenStrip({...options, onPoint: () => {}});
  made.items.forEach((item, i) => item.addEventListener("click", () => options.onPoint(i)));
  made.element.addEventListener("keyup", (event) => {
    if (!event.key.startsWith("Arrow") && event.key !== "Home" && event.key !== "End") return;
    const at = made.items.indexOf(document.activeElement);
    if (at >= 0) options.onPoint(at);
  });
  return made.element;
}

function strongest(row) {
  let at = 0;
  for (let i = 1; i < row.length; ++i)
    if (row[i] > row[at]) at = i;
  return at;
}
