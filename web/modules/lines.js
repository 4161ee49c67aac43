// Two columns of words with lines between them: from the word that looks, on the left, to the words
// that it looks at, on the right. Beside the right column, one cell for each head.
import {cssColor, inkOn, weightColor} from "./color.js";
import {roving} from "./controls.js";
import {h, pieceSpan, prepareCanvas, whenNear} from "./dom.js";
import {percent} from "./format.js";
import {mostListed} from "./inspection.js";
import {t} from "./language.js";

// options: matrix, rows, columns (labels), heads: [{name, matrix}], head (its index in heads or
// -1), writes (whether the rows are words that are being written), selected() → row, onPoint(row),
// onHead(index), largest (undefined: weights are shares of 1).
export function attentionLines(options) {
  const {matrix, rows, columns, heads} = options;
  const rowCount = Math.min(rows.length, mostListed);
  const columnCount = Math.min(columns.length, mostListed);
  const height = Math.max(rowCount, columnCount) > 24 ? 24 : 30;
  const headWidth = heads.length > 8 ? 10 : 15;
  const largest = options.largest || 1;
  const label = (value) => (options.largest ? value.toFixed(3) : percent(value));

  const queryTitle = t(options.writes ? "lines.writes" : "lines.queries");

  const queryItems = rows.slice(0, rowCount)
                         .map(
                             (text, i) =>
                                 h("button", {
                                   type: "button",
                                   role: "option",
                                   class: "line-word query-word",
                                   tabindex: "-1",
                                   data: {key: `line.${i}`},
                                   style: {height: `${height}px`},
                                   on: {
                                     focus: () => options.onPoint(i),
                                     click: () => options.onPoint(i),
                                     pointerenter: (event) => {
                                       if (event.pointerType === "mouse") options.onPoint(i);
                                     }
                                   },
                                 },
                                   pieceSpan(text)));
  const queryList =
      h("div", {class: "line-queries", role: "listbox", "aria-label": queryTitle}, queryItems);
  roving(queryList, '[role="option"]');

  const keyItems = columns.slice(0, columnCount)
                       .map(
                           (text) => h(
                               "li", {class: "line-word key-word", style: {height: `${height}px`}},
                               pieceSpan(text), h("span", {class: "line-weight"})));
  const keyList =
      h("ul", {class: "line-keys", "aria-label": t("lines.keys"), role: "list"}, keyItems);

  const links = h("canvas", {class: "line-links", "aria-hidden": "true"});
  const cells = h("canvas", {class: "line-heads", "aria-hidden": "true", title: t("lines.heads")});
  const headNames =
      h("div", {class: "line-head-names", "aria-hidden": "true"},
        heads.map((head, i) => h("button", {
                    type: "button",
                    tabindex: "-1",
                    class: i === options.head ? "chosen" : "",
                    text: head.short,
                    title: head.name,
                    style: {width: `${headWidth}px`},
                    on: {click: () => options.onHead(i)},
                  })));
  // Sizes before the first drawing, so that nothing moves.
  links.style.height = `${Math.max(rowCount, columnCount) * height}px`;
  cells.style.width = `${heads.length * headWidth}px`;
  cells.style.height = `${columnCount * height}px`;
  const showHeads = heads.length > 1;
  const element = h(
      "div", {class: "lines"}, h("div", {class: "line-title", text: queryTitle}), h("div", {}),
      h("div", {class: "line-title", text: t("lines.keys")}), showHeads ? headNames : h("div", {}),
      queryList, links, keyList, showHeads ? cells : h("div", {}));

  let drawn = false;
  const draw = () => {
    const chosen = options.selected();
    queryItems.forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === chosen));
      item.tabIndex = i === chosen || (i === 0 && !(chosen >= 0 && chosen < rowCount)) ? 0 : -1;
    });
    const active = chosen >= 0 && chosen < matrix.rows;
    keyItems.forEach((item, i) => {
      const value = active ? matrix.at(chosen, i) : 0;
      const color = active ? weightColor(value, largest) : "";
      item.style.background = color;
      item.style.color = color ? inkOn(color) : "";
      item.lastChild.textContent = active ? label(value) : "";
    });
    if (!drawn || !links.isConnected) return;
    const total = Math.max(rowCount, columnCount) * height;
    const width = links.parentElement ? Math.max(40, links.clientWidth) : 100;
    const context = prepareCanvas(links, width, total);
    links.style.width = "100%";
    const line = (row, column, value, strong) => {
      context.globalAlpha = strong ? Math.min(1, 0.12 + 0.88 * Math.sqrt(value / largest)) :
                                     0.5 * Math.min(1, value / largest);
      context.lineWidth =
          strong ? Math.max(0.75, 7 * (value / largest)) : Math.max(0.5, 3 * (value / largest));
      context.beginPath();
      const y1 = (row + 0.5) * height;
      const y2 = (column + 0.5) * height;
      context.moveTo(0, y1);
      context.bezierCurveTo(width * 0.45, y1, width * 0.55, y2, width, y2);
      context.stroke();
    };
    context.strokeStyle = active ? cssColor("query") : cssColor("accent");
    for (let row = 0; row < rowCount; ++row) {
      if (active && row !== chosen) continue;
      for (let column = 0; column < columnCount; ++column) {
        const value = matrix.at(row, column);
        if (value >= (active ? 0.004 : 0.12) * largest) line(row, column, value, active);
      }
    }
    context.globalAlpha = 1;
    if (!showHeads) return;
    const grid = prepareCanvas(cells, heads.length * headWidth, columnCount * height);
    heads.forEach((head, i) => {
      for (let column = 0; column < columnCount; ++column) {
        const value = active && head.matrix ? head.matrix.at(chosen, column) : 0;
        grid.fillStyle = weightColor(value, largest);
        grid.fillRect(i * headWidth, column * height + 1, headWidth - 1, height - 2);
      }
    });
    if (options.head >= 0) {
      grid.strokeStyle = cssColor("ink");
      grid.strokeRect(options.head * headWidth + 0.5, 0.5, headWidth - 2, columnCount * height - 1);
    }
  };
  whenNear(element, () => {
    drawn = true;
    draw();
    const observer = new ResizeObserver(() => (links.isConnected ? draw() : observer.disconnect()));
    observer.observe(element);
  });
  draw();
  return {element, update: draw};
}
