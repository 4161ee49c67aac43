// A matrix as a picture: a canvas as large as the visible part, which draws the cells that are
// scrolled into view, with labels that stay in place. Arrow keys move from cell to cell; the same
// numbers can be opened as a table.
import {cssColor, imageOf, inkOn, signedColor, weightColor} from "./color.js";
import {h, prepareCanvas, whenNear} from "./dom.js";
import {number, shorten} from "./format.js";
import {t} from "./language.js";

const labelFont =
    '12px system-ui, "Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans KR", "Noto Sans CJK KR", sans-serif';
const numberFont = '11px ui-monospace, "SF Mono", Consolas, "DejaVu Sans Mono", monospace';
const mostTableCells = 20000;

// options: matrix, rows and columns (labels), name, key (keeps focus and scroll over redraws),
// signed, largest, digits, cell [smallest, largest size], numbers, masked(r, c), legend,
// selected() → {row, column}, onPoint(row, column), onOpen(row, column), describe(row, column),
// rowTitle, columnTitle, bands (columns after which a line is drawn).
export function heatmap(options) {
  const {matrix, rows, columns} = options;
  const digits = options.digits ?? 2;
  const largest =
      options.largest ?? (options.signed ? matrix.largest() : Math.max(matrix.largest(), 1e-9));
  const canvas = h("canvas", {"aria-hidden": "true"});
  const spacer = h("div", {class: "heatmap-space"}, canvas);
  const box =
      h("div", {
        class: "heatmap-scroll",
        tabindex: "0",
        role: "application",
        "aria-roledescription": t("matrix"),
        "aria-label": `${options.name}. ${t("matrix.keys")}`,
        data: {key: options.key},
      },
        spacer);
  let cell = {width: 0, height: 0, left: 0, top: 0};
  let hovered = null;
  let drawn = false;
  let frame = 0;

  const measure = () => {
    const context = canvas.getContext("2d");
    context.font = labelFont;
    const width = box.clientWidth || 320;
    const widest = rows.reduce(
        (most, label) => Math.max(most, context.measureText(shorten(label, 14)).width), 0);
    const left = Math.min(Math.ceil(widest) + 12, width * 0.34);
    const [small, big] = options.cell || [9, 56];
    const room = width - left - 36;
    const size = Math.floor(Math.min(big, Math.max(small, room / Math.max(1, matrix.columns))));
    const widestColumn = columns.reduce(
        (most, label) => Math.max(most, context.measureText(shorten(label, 12)).width), 0);
    const flat = widestColumn + 6 <= size;
    cell = {
      width: size,
      height: Math.max(options.cellHeight || Math.min(size, 34), 3),
      left,
      flat,
      top: flat ? 24 : Math.ceil(Math.min(widestColumn, 92) * 0.72) + 16,
    };
    const total = {
      width: left + size * matrix.columns + (flat ? 4 : 40),
      height: cell.top + cell.height * matrix.rows + 2
    };
    spacer.style.width = `${total.width}px`;
    spacer.style.height = `${total.height}px`;
    box.style.height =
        `${Math.min(total.height + (total.width > width ? 14 : 0), options.height || 520)}px`;
  };

  const colorOf = (row, column) => {
    const value = matrix.at(row, column);
    return options.signed ? signedColor(value, largest) : weightColor(value, largest);
  };

  const draw = () => {
    frame = 0;
    if (!drawn || !box.isConnected) return;
    const width = box.clientWidth;
    const height = box.clientHeight;
    const context = prepareCanvas(canvas, width, height);
    const x0 = cell.left - box.scrollLeft;
    const y0 = cell.top - box.scrollTop;
    const firstRow = Math.max(0, Math.floor(box.scrollTop / cell.height));
    const lastRow =
        Math.min(matrix.rows, Math.ceil((box.scrollTop + height - cell.top) / cell.height));
    const firstColumn = Math.max(0, Math.floor(box.scrollLeft / cell.width));
    const lastColumn =
        Math.min(matrix.columns, Math.ceil((box.scrollLeft + width - cell.left) / cell.width));
    const ink = cssColor("ink");
    const faint = cssColor("faint");
    const chosen = options.selected ? options.selected() : {};
    const gap = cell.width >= 12 && cell.height >= 12 ? 1 : 0;
    const numbers = options.numbers !== false && cell.width >= 36 && cell.height >= 18;

    context.save();
    context.beginPath();
    context.rect(cell.left, cell.top, width - cell.left, height - cell.top);
    context.clip();
    context.font = numberFont;
    context.textAlign = "center";
    context.textBaseline = "middle";
    // Small cells: all of them as one scaled picture.
    const asImage =
        !gap && !numbers && !options.masked && matrix.columns <= 8192 && matrix.rows <= 8192;
    if (asImage) {
      context.imageSmoothingEnabled = false;
      context.drawImage(
          imageOf(matrix, largest, Boolean(options.signed)), x0, y0, matrix.columns * cell.width,
          matrix.rows * cell.height);
    }
    for (let row = firstRow; row < lastRow && !asImage; ++row) {
      for (let column = firstColumn; column < lastColumn; ++column) {
        const x = x0 + column * cell.width;
        const y = y0 + row * cell.height;
        const masked = options.masked && options.masked(row, column);
        if (masked) {
          context.strokeStyle = faint;
          context.lineWidth = 1;
          context.strokeRect(x + 0.5, y + 0.5, cell.width - 1 - gap, cell.height - 1 - gap);
          context.beginPath();
          const cross = Math.min(cell.width, cell.height) * 0.2;
          const [cx, cy] = [x + cell.width / 2, y + cell.height / 2];
          context.moveTo(cx - cross, cy - cross);
          context.lineTo(cx + cross, cy + cross);
          context.moveTo(cx + cross, cy - cross);
          context.lineTo(cx - cross, cy + cross);
          context.stroke();
          continue;
        }
        const color = colorOf(row, column);
        context.fillStyle = color;
        context.fillRect(x, y, cell.width - gap, cell.height - gap);
        if (numbers) {
          context.fillStyle = inkOn(color);
          context.fillText(
              number(matrix.at(row, column), digits), x + cell.width / 2,
              y + cell.height / 2 + 0.5);
        }
      }
    }
    for (const band of options.bands || []) {
      context.fillStyle = ink;
      context.fillRect(x0 + band * cell.width - 1, y0, 1, matrix.rows * cell.height);
    }
    if (chosen.row >= 0)
      outline(
          context, x0, y0 + chosen.row * cell.height, matrix.columns * cell.width - gap,
          cell.height - gap, cssColor("query"), 2);
    if (chosen.column >= 0)
      outline(
          context, x0 + chosen.column * cell.width, y0, cell.width - gap,
          matrix.rows * cell.height - gap, cssColor("key"), chosen.row >= 0 ? 1 : 2);
    if (chosen.row >= 0 && chosen.column >= 0) {
      outline(
          context, x0 + chosen.column * cell.width, y0 + chosen.row * cell.height, cell.width - gap,
          cell.height - gap, ink, 2);
    }
    if (hovered)
      outline(
          context, x0 + hovered.column * cell.width, y0 + hovered.row * cell.height,
          cell.width - gap, cell.height - gap, ink, 1.5);
    context.restore();

    context.font = labelFont;
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(0, cell.top - 5, cell.left, height - cell.top + 5);
    context.clip();
    context.textAlign = "right";
    const rowStep = Math.max(1, Math.ceil(13 / cell.height));
    for (let row = firstRow - (firstRow % rowStep); row < lastRow; row += rowStep) {
      context.fillStyle = row === chosen.row ? cssColor("query") : ink;
      context.fillText(
          shorten(rows[row], 14), cell.left - 6, y0 + (row + 0.5) * cell.height, cell.left - 8);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(cell.left - 4, 0, width, cell.top);
    context.clip();
    const columnStep = Math.max(1, Math.ceil(15 / cell.width));
    for (let column = firstColumn - (firstColumn % columnStep); column < lastColumn;
         column += columnStep) {
      context.fillStyle = column === chosen.column ? cssColor("key") : ink;
      const x = x0 + (column + 0.5) * cell.width;
      if (cell.flat) {
        context.textAlign = "center";
        context.fillText(columns[column], x, cell.top - 11);
      } else {
        context.save();
        context.translate(x, cell.top - 7);
        context.rotate(-Math.PI / 4);
        context.textAlign = "left";
        context.fillText(shorten(columns[column], 12), 0, 0, 92);
        context.restore();
      }
    }
    context.restore();
  };

  const update = () => {
    if (!frame) frame = requestAnimationFrame(draw);
  };

  const cellAt = (event) => {
    const bounds = box.getBoundingClientRect();
    const column =
        Math.floor((event.clientX - bounds.left + box.scrollLeft - cell.left) / cell.width);
    const row = Math.floor((event.clientY - bounds.top + box.scrollTop - cell.top) / cell.height);
    const inside = row >= 0 && row < matrix.rows && column >= 0 && column < matrix.columns &&
        event.clientX - bounds.left >= cell.left && event.clientY - bounds.top >= cell.top;
    return inside ? {row, column} : null;
  };

  const describe = (row, column) =>
      (options.describe ?
           options.describe(row, column) :
           `${rows[row]}, ${columns[column]}: ${number(matrix.at(row, column), digits)}`);

  const readout = h("output", {class: "readout", "aria-live": "polite"});
  const show = (row, column) => {
    readout.textContent = row >= 0 && column >= 0 ? describe(row, column) : "";
  };

  const scrollTo = (row, column) => {
    const x = column * cell.width;
    const y = row * cell.height;
    const width = box.clientWidth - cell.left;
    const height = box.clientHeight - cell.top;
    if (x < box.scrollLeft)
      box.scrollLeft = x;
    else if (x + cell.width > box.scrollLeft + width)
      box.scrollLeft = x + cell.width - width;
    if (y < box.scrollTop)
      box.scrollTop = y;
    else if (y + cell.height > box.scrollTop + height)
      box.scrollTop = y + cell.height - height;
  };

  let cursor = null;
  const moveTo = (row, column) => {
    cursor = {row: clamp(row, matrix.rows), column: clamp(column, matrix.columns)};
    hovered = cursor;
    scrollTo(cursor.row, cursor.column);
    show(cursor.row, cursor.column);
    if (options.onPoint) options.onPoint(cursor.row, cursor.column);
    update();
  };
  const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  box.addEventListener("keydown", (event) => {
    const chosen = options.selected ? options.selected() : {};
    const at =
        cursor || {row: Math.max(0, chosen.row ?? 0), column: Math.max(0, chosen.column ?? 0)};
    if (moves[event.key] && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (cursor)
        moveTo(at.row + moves[event.key][0], at.column + moves[event.key][1]);
      else
        moveTo(at.row, at.column);
    } else if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      moveTo(at.row, event.key === "Home" ? 0 : matrix.columns - 1);
    } else if ((event.key === "Enter" || event.key === " ") && options.onOpen) {
      event.preventDefault();
      options.onOpen(clamp(at.row, matrix.rows), clamp(at.column, matrix.columns));
    }
  });
  box.addEventListener("pointermove", (event) => {
    const at = cellAt(event);
    if (at && hovered && at.row === hovered.row && at.column === hovered.column) return;
    hovered = at;
    if (at) {
      show(at.row, at.column);
      if (options.onPoint && event.pointerType === "mouse") options.onPoint(at.row, at.column);
    }
    update();
  });
  box.addEventListener("pointerleave", () => {
    hovered = null;
    update();
  });
  box.addEventListener("blur", () => {
    hovered = null;
    update();
  });
  box.addEventListener("click", (event) => {
    const at = cellAt(event);
    if (!at) return;
    cursor = at;
    show(at.row, at.column);
    if (options.onPoint) options.onPoint(at.row, at.column);
    if (options.onOpen) options.onOpen(at.row, at.column);
  });
  box.addEventListener("scroll", update, {passive: true});
  const observer = new ResizeObserver(() => {
    if (!drawn) return;
    if (!box.isConnected) {
      observer.disconnect();
      return;
    }
    measure();
    update();
  });
  whenNear(box, () => {
    drawn = true;
    measure();
    draw();
    observer.observe(box.parentElement);
  });
  // A height before it is drawn, so that the page does not jump.
  box.style.height = `${Math.min(matrix.rows * 22 + 60, options.height || 520)}px`;

  const element =
      h("div", {class: "heatmap"},
        options.legend === false ? null : legend(options.signed, largest, digits), box, readout,
        asTable(options, digits));
  return {element, update, box};
}

function outline(context, x, y, width, height, color, line) {
  context.strokeStyle = color;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, y + line / 2, width - line, height - line);
}

function clamp(value, count) {
  return Math.min(Math.max(value, 0), count - 1);
}

// The colours from the smallest to the largest value.
function legend(signed, largest, digits) {
  const bar = h("span", {class: "legend-bar", "aria-hidden": "true"});
  for (let i = 0; i <= 24; ++i) {
    const share = i / 24;
    const color = signed ? signedColor((share * 2 - 1) * largest, largest) :
                           weightColor(share * largest, largest);
    bar.append(h("span", {style: {background: color}}));
  }
  return h(
      "div", {class: "legend"}, h("span", {text: signed ? number(-largest, digits) : "0"}), bar,
      h("span", {text: number(largest, digits)}));
}

// The numbers as a table, made when it is opened.
function asTable(options, digits) {
  const {matrix, rows, columns} = options;
  const details =
      h("details", {class: "as-table"},
        h("summary", {text: t("as.table"), data: {key: `${options.key}.table`}}));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const most = Math.max(1, Math.floor(mostTableCells / Math.max(1, matrix.columns)));
    const count = Math.min(matrix.rows, most);
    const table =
        h("table", {}, h("caption", {text: options.name}),
          h("thead", {},
            h("tr", {}, h("td", {}),
              columns.map((label) => h("th", {scope: "col"}, h("bdi", {text: label}))))));
    const body = h("tbody");
    for (let row = 0; row < count; ++row) {
      const line = h("tr", {}, h("th", {scope: "row"}, h("bdi", {text: rows[row]})));
      for (let column = 0; column < matrix.columns; ++column) {
        const masked = options.masked && options.masked(row, column);
        line.append(h("td", {text: masked ? "−∞" : number(matrix.at(row, column), digits + 1)}));
      }
      body.append(line);
    }
    table.append(body);
    details.append(
        h("div", {class: "table-scroll", tabindex: "0", role: "region", "aria-label": options.name},
          table));
    if (count < matrix.rows)
      details.append(h("p", {class: "note", text: t("first.rows", {count, all: matrix.rows})}));
  });
  return details;
}

// A small picture of a matrix without labels, drawn when it comes into view.
export function thumbnail(matrix, size, largest, signed = false) {
  const canvas = h("canvas", {class: "thumbnail", "aria-hidden": "true"});
  canvas.style.width = `${size}px`;
  canvas.style.height = `${size}px`;
  const draw = () => {
    if (!matrix.rows || !matrix.columns) return;
    const context = prepareCanvas(canvas, size, size);
    context.imageSmoothingEnabled = false;
    context.drawImage(imageOf(matrix, largest, signed), 0, 0, size, size);
  };
  whenNear(canvas, draw);
  return canvas;
}

// A vector as a strip of colours.
export function strip(values, largest, width = 160) {
  const canvas = h("canvas", {class: "strip", "aria-hidden": "true"});
  const height = 14;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  whenNear(canvas, () => {
    const context = prepareCanvas(canvas, width, height);
    const step = width / values.length;
    for (let i = 0; i < values.length; ++i) {
      context.fillStyle = signedColor(values[i], largest);
      context.fillRect(i * step, 0, Math.ceil(step), height);
    }
  });
  return canvas;
}
