// The words that the model considered at each position, with their probabilities.
import {inkOn, weightColor} from "./color.js";
import {bar, noteBox, roving} from "./controls.js";
import {h, pieceSpan, textSpan} from "./dom.js";
import {number, percent, visible} from "./format.js";
import {mostListed} from "./inspection.js";
import {t} from "./language.js";

// The ten best words of a step as bars.
export function bestBars(step) {
  const best = Array.isArray(step.best) ? step.best : [];
  const rest = 1 - best.reduce((sum, word) => sum + (word.probability || 0), 0);
  const table =
      h("table", {class: "best"}, h("caption", {class: "visually-hidden", text: t("best.caption")}),
        h("thead", {},
          h("tr", {}, h("th", {scope: "col", text: t("column.word")}),
            h("th", {scope: "col", class: "num", text: t("column.logit")}),
            h("th", {scope: "col", class: "num", text: t("column.probability")}), h("td", {}))));
  const body = h("tbody");
  for (const word of best) {
    const chosen = word.id === step.id;
    body.append(
        h("tr", {class: chosen ? "chosen" : ""},
          h("th", {scope: "row"}, pieceSpan(visible(word.piece)),
            h("span", {class: "aside", text: ` ${word.id}`})),
          h("td", {class: "num", text: number(word.logit, 2)}),
          h("td", {class: "num", text: percent(word.probability)}),
          h("td", {class: "bar-cell"}, bar(word.probability, chosen ? "chosen" : ""),
            chosen ? h("span", {class: "aside", text: t("chosen")}) : null)));
  }
  if (best.length && rest > 0.0005) {
    body.append(
        h("tr", {class: "rest"}, h("th", {scope: "row", text: t("others")}), h("td", {}),
          h("td", {class: "num", text: percent(rest)}), h("td", {class: "bar-cell"}, bar(rest))));
  }
  table.append(body);
  return table;
}

// The steps as a row of words, shaded by probability.
export function stepStrip(app, chosen) {
  const steps = app.document.steps.slice(0, mostListed);
  const list = h("div", {class: "tokens", role: "radiogroup", "aria-label": t("steps.strip")});
  steps.forEach((step, i) => {
    const color = weightColor(step.probability || 0, 1);
    list.append(
        h("button", {
          type: "button",
          role: "radio",
          class: "token shaded",
          "aria-checked": String(i === chosen),
          tabindex: i === chosen ? "0" : "-1",
          "aria-label": t(
              "step.label",
              {n: i + 1, piece: visible(step.piece ?? ""), probability: percent(step.probability)}),
          style: {background: color, color: inkOn(color)},
          data: {key: `step.${i}`},
          on: {click: () => app.set({step: i})},
        },
          pieceSpan(visible(step.piece ?? "?")), h("small", {text: percent(step.probability)})));
  });
  roving(list, '[role="radio"]', (element) => element.click());
  return list;
}

export const wordsView = {
  id: "words",
  available: (app) => app.document.steps.length > 0,
  render(app) {
    const doc = app.document;
    const at = Math.min(app.state.step, doc.steps.length - 1);
    const step = doc.steps[at];
    const before = doc.task === "fill" ?
        null :
        doc.input.slice(Math.max(0, (step.position ?? at) - 20), (step.position ?? at) + 1);
    return h(
        "div", {class: "view-words"},
        h("p", {class: "lead", text: t(doc.task === "fill" ? "about.fill" : "about.words")}),
        h("section", {class: "panel"}, h("h3", {text: t("steps.strip")}), stepStrip(app, at)),
        h("section", {class: "panel"}, h("h3", {}, t("step.n", {n: at + 1})),
          before ? h("p", {class: "context-line"}, t("so.far"), " ",
                     before.map((piece) => [textSpan(piece, "token-text"), " "]),
                     h("span", {class: "blank", text: "?"})) :
                   null,
          noteBox(t("box.best"), bestBars(step))));
  },
};
