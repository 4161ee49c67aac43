// Where each word looks: all heads of a layer as small pictures, one of them large, and lines.
import {choice, roving} from "./controls.js";
import {h} from "./dom.js";
import {number, percent} from "./format.js";
import {heatmap, thumbnail} from "./heatmap.js";
import {t} from "./language.js";
import {attentionLines} from "./lines.js";
import {currentPlace, headName, kindName, partName, placeControls, placeName, unitControl} from "./place.js";

function headCard(app, place, kind, largest) {
  const {document: doc, state} = app;
  const shown = doc.shown(place, kind, state.unit);
  const entry = doc.headEntry(place);
  const measured = entry && entry.kind;
  const figure = measured && measured.name !== "mixed" ? ` ${number(measured.measure)}` : "";
  const group = place.head === "align" ? doc.headNumbers(place).map((head) => head + 1) : null;
  const chosen = state.head === place.head;
  const label = [
    headName(place.head), group ? group.join(" + ") : "",
    measured ? `${kindName(measured.name)}${figure}` : ""
  ].filter(Boolean).join(", ");
  return h(
      "button", {
        type: "button",
        class: "head-card",
        role: "radio",
        "aria-checked": String(chosen),
        tabindex: chosen ? "0" : "-1",
        "aria-label": label,
        data: {key: `card.${place.head}`},
        on: {click: () => app.set({head: place.head})},
      },
      shown ? thumbnail(shown.matrix, 92, largest || shown.matrix.largest()) : null,
      h("span", {class: "head-title", text: headName(place.head)}),
      measured ? h("span", {class: "head-kind"}, kindName(measured.name),
                   h("span", {class: "figure", text: figure})) :
                 null,
      group ? h("span", {class: "head-kind figure", text: group.join(" + ")}) : null);
}

function headCards(app, kind) {
  const {document: doc, state} = app;
  const heads = doc.heads(state.stack, state.part, state.layer);
  if (heads.length < 2) return null;
  const place = currentPlace(app);
  const values = [...heads, "mean", ...(doc.aligns(place) ? ["align"] : [])];
  const group =
      h("div", {class: "head-cards", role: "radiogroup", "aria-label": t("heads.of.layer")},
        values.map((head) => headCard(app, {...place, head}, kind, kind === "raw" ? 1 : 0)));
  roving(group, '[role="radio"]', (element) => element.click());
  return h("section", {class: "panel"}, h("h3", {text: t("heads.of.layer")}), group);
}

function kindDetails(app) {
  const entry = app.document.headEntry(currentPlace(app));
  if (!entry || !entry.kind || !entry.kind.all) return null;
  const list = h("dl", {class: "kinds"});
  for (const [name, measure] of Object.entries(entry.kind.all).sort((a, b) => b[1] - a[1])) {
    list.append(
        h("div", {class: name === entry.kind.name ? "chosen" : ""}, h("dt", {text: kindName(name)}),
          h("dd", {text: number(measure)})));
  }
  return h(
      "div", {}, h("h4", {text: t("kind.measured")}), list,
      h("p", {class: "note", text: t("kind.how")}));
}

export const attentionView = {
  id: "attention",
  available: (app) => app.document.parts.length > 0,
  render(app) {
    const {document: doc, state} = app;
    const place = currentPlace(app);
    const kinds = doc.weightKinds(place);
    const kind = kinds.includes(state.weights) ? state.weights : "raw";
    const controls = h("div", {class: "controls"}, placeControls(app), unitControl(app));
    if (kinds.length > 1) {
      controls.append(choice({
        name: t("weights"),
        key: "weights",
        value: kind,
        choices: kinds.map((value) => ({value, text: t(`weights.${value}`)})),
        onChange: (weights) => app.set({weights}),
      }));
    }
    const shown = doc.shown(place, kind, state.unit);
    if (!shown) return h("div", {}, controls, h("p", {text: t("nothing.here")}));
    const isRollout = kind === "rollout";
    const name = isRollout ? `${t("weights.rollout")} · ${partName(place.stack, place.part)}` :
                             placeName(place);
    const largest = kind === "gradient" ? shown.matrix.largest() : undefined;
    const value = (v) => (kind === "gradient" ? number(v, 4) : percent(v));
    const hasArithmetic =
        kind === "raw" && typeof place.head === "number" && (shown.words || doc.arithmetic(place));
    const causal = doc.isCausal(place.stack, place.part);
    const map = heatmap({
      matrix: shown.matrix,
      rows: shown.rows,
      columns: shown.columns,
      name,
      key: "matrix",
      largest: largest ?? 1,
      digits: kind === "gradient" ? 3 : 2,
      masked: causal ? (r, c) => c > r : null,
      selected: () => ({row: state.query, column: state.key}),
      onPoint: (query, key) => app.point({query, key}),
      onOpen: hasArithmetic ?
          (query, key) => {
            app.point({query, key});
            app.set({view: "arithmetic", returnTo: "attention"});
          } :
          null,
      describe: (r, c) => `${shown.rows[r]} → ${shown.columns[c]}: ${
          causal && c > r ? t("masked") : value(shown.matrix.at(r, c))}`,
    });
    const numbers = isRollout ? [] : doc.heads(place.stack, place.part, place.layer);
    const heads = numbers.map((head) => {
      const own = doc.shown({...place, head}, kind, state.unit);
      return {name: headName(head), short: String(head + 1), matrix: own && own.matrix};
    });
    const lines = attentionLines({
      matrix: shown.matrix,
      rows: shown.rows,
      columns: shown.columns,
      heads,
      head: numbers.indexOf(place.head),
      largest,
      writes: place.part !== "self_attention" && doc.target.length > 0,
      selected: () => app.state.query,
      onPoint: (query) => app.point({query, key: -1}),
      onHead: (i) => app.set({head: numbers[i]}),
    });
    app.onPoint(() => {
      map.update();
      lines.update();
    });
    return h(
        "div", {class: "view-attention"}, controls,
        h("p", {class: "lead", text: t(`about.${kind}`)}), isRollout ? null : headCards(app, kind),
        h("div", {class: "two-panes"},
          h("section", {class: "panel"}, h("h3", {text: t("lines.title")}),
            h("p", {class: "note", text: t("lines.how")}), lines.element),
          h("section", {class: "panel"}, h("h3", {text: name}),
            h("p", {class: "note", text: t(hasArithmetic ? "matrix.how.open" : "matrix.how")}),
            map.element, kindDetails(app))));
  },
};
