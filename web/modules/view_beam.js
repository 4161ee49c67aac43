// The tree of a beam search: which hypotheses were kept, dropped and finished, and why.
import {h, pieceSpan, svg, whenNear} from "./dom.js";
import {number, percent, visible} from "./format.js";
import {hasText, t} from "./language.js";

const mostNodes = 3000;

// Reasons that the program gives, in the language of the page.
function reason(why) {
  const rank = /^(it would end, but with )?rank (\d+)(?: of|; the beam keeps) (\d+)( kept)?$/.exec(
      why || "");
  if (rank) return t(rank[1] ? "why.end.rank" : "why.rank", {rank: rank[2], kept: rank[3]});
  return hasText(`why.${why}`) ? t(`why.${why}`) : visible(why || "");
}

function label(node, parent, best) {
  const parts = [
    `${visible(node.piece ?? "")}`, t(`beam.${node.state}`),
    `${t("score")} ${number(node.score, 3)}`
  ];
  if (Number.isFinite(node.log_probability)) parts.push(percent(Math.exp(node.log_probability)));
  if (node.why) parts.push(reason(node.why));
  if (parent) parts.push(t("beam.after", {piece: visible(parent.piece ?? "")}));
  if (best) parts.push(t("beam.best"));
  return parts.join(", ");
}

export const beamView = {
  id: "beam",
  available: (app) => app.document.beam !== null,
  render(app) {
    const {beam} = app.document;
    const best = new Set(beam.best || []);
    const nodes = new Map();
    const details = h("output", {class: "readout beam-details", "aria-live": "polite"});
    const tree = h("div", {class: "beam", role: "group", "aria-label": t("view.beam")});
    const columns = [];
    let total = 0;
    beam.steps.forEach((step, number_) => {
      if (total > mostNodes) return;
      const column = h("ol", {class: "beam-step", "aria-label": t("step.n", {n: number_ + 1})});
      const shown = step.filter(
          (node) => app.state.showDropped || node.state !== "dropped" || best.has(node.id));
      for (const node of shown) {
        total += 1;
        const parent = nodes.get(node.parent);
        const isBest = best.has(node.id);
        const element =
            h("button", {
              type: "button",
              class: `beam-node ${node.state}${isBest ? " best" : ""}`,
              tabindex: "-1",
              "aria-label": label(node, parent && parent.node, isBest),
              data: {key: `beam.${node.id}`},
              on: {
                focus: () => point(node),
                pointerenter: (event) => {
                  if (event.pointerType === "mouse") point(node);
                },
                click: () => point(node),
              },
            },
              h("span", {class: "beam-piece"}, pieceSpan(visible(node.piece ?? ""))),
              h("span", {class: "figure", text: number(node.score, 2)}), h("span", {
                class: "beam-mark",
                "aria-hidden": "true",
                text: {kept: "", dropped: "×", finished: "■"}[node.state] ?? ""
              }));
        nodes.set(node.id, {node, element, parent: node.parent, step: number_});
        column.append(h("li", {}, element));
      }
      columns.push(column);
    });
    const edges = svg("svg", {class: "beam-edges", "aria-hidden": "true"});
    tree.append(edges, ...columns);
    const first = nodes.values().next().value;
    if (first) first.element.tabIndex = 0;

    const pathOf = (id) => {
      const path = [];
      for (let at = nodes.get(id); at && path.length < 10000; at = nodes.get(at.parent))
        path.unshift(at);
      return path;
    };
    const point = (node) => {
      const path = pathOf(node.id);
      for (const {element} of nodes.values()) element.classList.remove("on-path");
      for (const {element} of path) element.classList.add("on-path");
      for (const {element} of nodes.values()) element.tabIndex = -1;
      nodes.get(node.id).element.tabIndex = 0;
      const text =
          path.map(({node: n}) => visible(n.piece ?? "").replace(/▁/g, " ")).join("").trim();
      details.replaceChildren(
          h("bdi", {class: "beam-text", text}),
          h("span", {text: label(node, null, best.has(node.id))}));
    };
    tree.addEventListener("keydown", (event) => {
      const at = [...nodes.values()].find(({element}) => element === document.activeElement);
      if (!at) return;
      const same = [...nodes.values()].filter(({step}) => step === at.step);
      let to = null;
      if (event.key === "ArrowUp")
        to = same[same.indexOf(at) - 1];
      else if (event.key === "ArrowDown")
        to = same[same.indexOf(at) + 1];
      else if (event.key === "ArrowLeft")
        to = nodes.get(at.parent);
      else if (event.key === "ArrowRight") {
        const children =
            [...nodes.values()].filter(({parent, step}) => parent === at.node.id && step > at.step);
        to = children.find(({node}) => best.has(node.id)) || children[0];
      } else
        return;
      event.preventDefault();
      if (to) to.element.focus();
    });

    const drawEdges = () => {
      if (!tree.isConnected) return;
      const origin = tree.getBoundingClientRect();
      edges.setAttribute("width", tree.scrollWidth);
      edges.setAttribute("height", tree.scrollHeight);
      const lines = [];
      for (const {node, element, parent} of nodes.values()) {
        const from = nodes.get(parent);
        if (!from) continue;
        const a = from.element.getBoundingClientRect();
        const b = element.getBoundingClientRect();
        const [x1, y1] = [a.right - origin.left, a.top + a.height / 2 - origin.top];
        const [x2, y2] = [b.left - origin.left, b.top + b.height / 2 - origin.top];
        const middle = (x1 + x2) / 2;
        lines.push(svg("path", {
          d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`,
          class: `${node.state}${best.has(node.id) && best.has(parent) ? " best" : ""}`,
        }));
      }
      edges.replaceChildren(...lines);
    };
    const last = nodes.get((beam.best || [])[best.size - 1]) || first;
    if (last) point(last.node);
    whenNear(tree, drawEdges);
    const observer =
        new ResizeObserver(() => (tree.isConnected ? drawEdges() : observer.disconnect()));
    observer.observe(tree);

    const toggle =
        h("label", {class: "control check"}, h("input", {
            type: "checkbox",
            checked: app.state.showDropped,
            data: {key: "dropped"},
            on: {change: (event) => app.set({showDropped: event.target.checked})},
          }),
          h("span", {text: t("beam.show.dropped")}));
    return h(
        "div", {class: "view-beam"},
        h("p", {class: "lead", text: t("about.beam", {size: beam.size ?? "?"})}),
        h("div", {class: "controls"}, toggle,
          h("ul", {class: "beam-legend", role: "list"},
            ["best", "kept", "dropped", "finished"].map(
                (state) =>
                    h("li", {}, h("span", {
                        class: `beam-sample ${state}`,
                        "aria-hidden": "true",
                        text: {dropped: "×", finished: "■"}[state] ?? ""
                      }),
                      t(`beam.${state}`))))),
        h("section", {class: "panel"},
          h("div",
            {class: "beam-scroll", tabindex: "0", role: "region", "aria-label": t("view.beam")},
            tree),
          details));
  },
};
