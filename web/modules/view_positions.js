// The rows that tell a model where a word is.
import {lineChart} from "./charts.js";
import {select} from "./controls.js";
import {h} from "./dom.js";
import {number} from "./format.js";
import {heatmap} from "./heatmap.js";
import {hasText, t} from "./language.js";
import {headName} from "./place.js";

function numbers(count) {
  return Array.from({length: count}, (_, i) => String(i));
}

function numberSelect(app, name, key, count, value) {
  return select({
    name,
    key,
    value,
    choices: Array.from({length: count}, (_, i) => ({value: i, text: String(i)})),
    onChange: (chosen) => app.set({[key]: chosen}),
  });
}

function distance(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; ++i) sum += (a[i] - b[i]) ** 2;
  return Math.sqrt(sum);
}

// Two positions over all dimensions, and one dimension over all positions.
function comparisons(app, rows, kind) {
  const {state} = app;
  const first = Math.min(state.positionA, rows.rows - 1);
  const second = Math.min(state.positionB, rows.rows - 1);
  const dimension = Math.min(state.positionDimension, rows.columns - 1);
  const column = Array.from({length: rows.rows}, (_, i) => rows.at(i, dimension));
  return h(
      "div", {class: "two-panes"},
      h("section", {class: "panel"}, h("h3", {text: t("positions.compare")}),
        h("div", {class: "controls"},
          numberSelect(app, t("position.first"), "positionA", rows.rows, first),
          numberSelect(app, t("position.second"), "positionB", rows.rows, second)),
        lineChart({
          name: t("positions.compare"),
          xName: t("dimension"),
          series: [
            {name: `pos = ${first}`, className: "s1", values: rows.row(first)},
            {name: `pos = ${second}`, className: "s2", dashed: true, values: rows.row(second)}
          ],
        }),
        h("p", {class: "result"}, `‖${first} − ${second}‖ = `,
          h("b", {text: number(distance(rows.row(first), rows.row(second)), 3)})),
        h("p", {class: "note", text: t("positions.compare.how")})),
      h("section", {class: "panel"}, h("h3", {text: t("positions.dimension")}),
        h("div", {class: "controls"},
          numberSelect(app, t("dimension"), "positionDimension", rows.columns, dimension)),
        lineChart({
          name: t("positions.dimension"),
          xName: t("position"),
          series: [{name: `dim = ${dimension}`, className: "s3", values: column}]
        }),
        kind === "sinusoidal" ? h("p", {class: "note", text: t("positions.dimension.how")}) :
                                null));
}

export const positionsView = {
  id: "positions",
  available: (app) => app.document.positions !== null,
  render(app) {
    const {kind, rows, similarity, biases} = app.document.positions;
    const about = `about.position.${kind}`;
    const root =
        h("div", {class: "view-positions"},
          h("p", {class: "lead", text: hasText(about) ? t(about) : t("about.positions")}));
    if (rows) {
      root.append(
          h("section", {class: "panel"}, h("h3", {text: t("positions.rows")}),
            heatmap({
              matrix: rows,
              rows: numbers(rows.rows),
              columns: numbers(rows.columns),
              name: t("positions.rows"),
              key: "position.rows",
              signed: true,
              cell: [3, 38],
              cellHeight: Math.max(8, Math.min(18, 420 / rows.rows)),
              height: 460,
              describe: (r, c) =>
                  `${t("position")} ${r}, ${t("dimension")} ${c}: ${number(rows.at(r, c), 3)}`,
            }).element,
            h("p", {class: "note", text: t("positions.rows.how")})));
      root.append(comparisons(app, rows, kind));
    }
    if (similarity) {
      root.append(
          h("section", {class: "panel"}, h("h3", {text: t("positions.similarity")}),
            heatmap({
              matrix: similarity,
              rows: numbers(similarity.rows),
              columns: numbers(similarity.columns),
              name: t("positions.similarity"),
              key: "position.similarity",
              signed: true,
              cell: [8, 22],
              height: 760,
              numbers: false,
              describe: (r, c) =>
                  `${t("position")} ${r}, ${t("position")} ${c}: ${number(similarity.at(r, c), 3)}`,
            }).element,
            h("p", {class: "note", text: t("positions.similarity.how")})));
    }
    biases.forEach(
        (bias, head) => root.append(
            h("section", {class: "panel"},
              h("h3", {text: `${t("positions.bias")} · ${headName(head)}`}),
              heatmap({
                matrix: bias,
                rows: numbers(bias.rows),
                columns: numbers(bias.columns),
                name: `${t("positions.bias")} ${head + 1}`,
                key: `position.bias.${head}`,
                signed: true,
                cell: [10, 28],
                height: 420,
              }).element)));
    return root;
  },
};
