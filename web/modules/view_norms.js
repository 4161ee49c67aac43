// What each sum and its normalisation do to the vector of a word.
import {lineChart} from "./charts.js";
import {tokenStrip} from "./controls.js";
import {h} from "./dom.js";
import {number} from "./format.js";
import {hasText, t} from "./language.js";

function partTitle(norm) {
  const key = `part.${norm.stack}.${norm.part}`;
  const name = hasText(key) ? t(key) :
      hasText(`sub.${norm.part}`) ? t(`sub.${norm.part}`) :
                                    norm.part || "";
  const layer = norm.layer >= 0 ? `${norm.layer + 1} ` : "";
  return `${layer}${name}`;
}

export function sideOfStack(doc, stack) {
  return stack === "encoder" && doc.source.length ? doc.sides.source : doc.sides.input;
}

function at(list, i) {
  return Array.isArray(list) ? list[Math.min(i, list.length - 1)] : undefined;
}

function stackPanel(app, stack, norms) {
  const side = sideOfStack(app.document, stack);
  const chosen = Math.min(Math.max(app.state.normToken, 0), side.pieces.length - 1);
  const content = h("div", {});
  const draw = (token) => {
    const values = norms.map(
        (norm) => ({
          title: partTitle(norm),
          before: [
            at(norm.before && norm.before.mean, token),
            at(norm.before && norm.before.deviation, token)
          ],
          after: [
            at(norm.after && norm.after.mean, token), at(norm.after && norm.after.deviation, token)
          ],
          branch: at(norm.length && norm.length.branch, token),
          stream: at(norm.length && norm.length.stream, token),
        }));
    const pair = (i, name) => lineChart({
      name: `${name}: ${side.pieces[token]}`,
      width: 420,
      height: 170,
      xs: norms.map((_, n) => n + 1),
      xName: t("norms.order"),
      digits: 2,
      zero: i === 1,
      series: [
        {
          name: `${name} · ${t("before")}`,
          className: "s1",
          values: values.map((v) => v.before[i] ?? NaN)
        },
        {
          name: `${name} · ${t("after")}`,
          className: "s2",
          dashed: true,
          values: values.map((v) => v.after[i] ?? NaN)
        }
      ],
    });
    const hasLength = values.some((v) => Number.isFinite(v.branch));
    const table = h(
        "table", {class: "sums"},
        h("thead", {},
          h("tr", {}, h("th", {scope: "col", text: t("norms.place")}),
            [["mean", "before"], ["deviation", "before"], ["mean", "after"], ["deviation", "after"]]
                .map(
                    ([what, when]) => h(
                        "th",
                        {scope: "col", class: "num", text: `${t(`norms.${what}`)} · ${t(when)}`})),
            hasLength ?
                [
                  h("th", {scope: "col", class: "num", text: t("norms.branch")}),
                  h("th", {scope: "col", class: "num", text: t("norms.stream")})
                ] :
                null)),
        h("tbody", {},
          values.map(
              (v) =>
                  h("tr", {}, h("th", {scope: "row", text: v.title}),
                    [...v.before, ...v.after]
                        .map((value) => h("td", {class: "num", text: number(value, 3)})),
                    hasLength ? [v.branch, v.stream].map(
                                    (value) => h("td", {class: "num", text: number(value, 3)})) :
                                null))));
    content.replaceChildren(
        h("div", {class: "charts"}, pair(0, t("norms.mean")), pair(1, t("norms.deviation")),
          hasLength ? lineChart({
            name: t("norms.lengths"),
            width: 420,
            height: 170,
            xs: norms.map((_, n) => n + 1),
            xName: t("norms.order"),
            zero: true,
            series: [
              {
                name: t("norms.branch"),
                className: "s3",
                values: values.map((v) => v.branch ?? NaN)
              },
              {
                name: t("norms.stream"),
                className: "s4",
                dashed: true,
                values: values.map((v) => v.stream ?? NaN)
              }
            ],
          }) :
                      ""),
        h("div",
          {class: "table-scroll", tabindex: "0", role: "region", "aria-label": t("view.norms")},
          table));
  };
  const strip = tokenStrip({
    name: t("norms.token"),
    key: `norm.${stack}`,
    texts: side.pieces,
    selected: chosen,
    onPoint: (i) => {
      app.state.normToken = i;
      strip.update(i);
      draw(i);
    },
  });
  draw(chosen);
  return h(
      "section", {class: "panel"}, h("h3", {text: t(`stack.${stack}`)}), strip.element, content);
}

export const normsView = {
  id: "norms",
  available: (app) => app.document.norms.length > 0,
  render(app) {
    const stacks = [...new Set(app.document.norms.map((norm) => norm.stack))];
    return h(
        "div", {class: "view-norms"}, h("p", {
          class: "lead",
          text: t(app.document.model.norm === "pre" ? "about.norms.pre" : "about.norms")
        }),
        stacks.map(
            (stack) =>
                stackPanel(app, stack, app.document.norms.filter((norm) => norm.stack === stack))));
  },
};
