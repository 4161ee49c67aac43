// Small line charts in SVG.
import {h, svg} from "./dom.js";
import {number} from "./format.js";

// series: [{name, className, values, dashed}]; the x of a value is its index, or xs[index].
// marker: an index to mark; onPick(index): a click chooses the nearest index.
export function lineChart({
  name,
  series,
  xs,
  xName,
  width = 640,
  height = 180,
  marker,
  onPick,
  digits = 1,
  zero = false
}) {
  const box = {left: 52, right: 12, top: 12, bottom: 30};
  const count = Math.max(...series.map((s) => s.values.length));
  const position = (i) => (xs ? xs[i] : i);
  const first = position(0);
  const last = position(count - 1);
  const finite = series.flatMap((s) => Array.from(s.values)).filter(Number.isFinite);
  let low = Math.min(...finite, zero ? 0 : Infinity);
  let high = Math.max(...finite, zero ? 0 : -Infinity);
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const x = (i) => box.left +
      (last > first ? (position(i) - first) / (last - first) : 0.5) *
          (width - box.left - box.right);
  const y = (value) =>
      height - box.bottom - ((value - low) / (high - low)) * (height - box.top - box.bottom);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": name,
    class: "chart",
    preserveAspectRatio: "xMidYMid meet"
  });
  for (const value of [low, (low + high) / 2, high]) {
    picture.append(
        svg("line",
            {class: "grid", x1: box.left, x2: width - box.right, y1: y(value), y2: y(value)}),
        svg("text", {
          class: "tick",
          x: box.left - 8,
          y: y(value) + 4,
          "text-anchor": "end",
          text: number(value, digits)
        }));
  }
  for (const i of new Set([0, Math.floor((count - 1) / 2), count - 1])) {
    picture.append(svg("text", {
      class: "tick",
      x: x(i),
      y: height - 10,
      "text-anchor": i === 0 ? "start" :
          i === count - 1    ? "end" :
                               "middle",
      text: String(position(i))
    }));
  }
  if (xName)
    picture.append(svg("text", {
      class: "tick",
      x: (box.left + width) / 2,
      y: height - 10,
      dx: "60",
      "text-anchor": "middle",
      text: xName
    }));
  for (const one of series) {
    let path = "";
    Array.from(one.values).forEach((value, i) => {
      if (Number.isFinite(value))
        path += `${path ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    });
    picture.append(svg("path", {
      d: path,
      class: `line ${one.className || ""}`,
      "stroke-dasharray": one.dashed ? "5 4" : null
    }));
  }
  if (marker >= 0) {
    picture.append(
        svg("line",
            {class: "marker", x1: x(marker), x2: x(marker), y1: box.top, y2: height - box.bottom}));
    for (const one of series) {
      if (Number.isFinite(one.values[marker]))
        picture.append(svg("circle", {
          class: `dot ${one.className || ""}`,
          cx: x(marker),
          cy: y(one.values[marker]),
          r: 4.5
        }));
    }
  }
  if (onPick) {
    picture.addEventListener("click", (event) => {
      const bounds = picture.getBoundingClientRect();
      const at = ((event.clientX - bounds.left) / bounds.width) * width;
      let nearest = 0;
      for (let i = 1; i < count; ++i)
        if (Math.abs(x(i) - at) < Math.abs(x(nearest) - at)) nearest = i;
      onPick(nearest);
    });
  }
  const names = series.filter((s) => s.name);
  return h(
      "div", {class: "chart-box"}, picture,
      names.length ?
          h("ul", {class: "chart-names", role: "list"},
            names.map(
                (one) =>
                    h("li", {},
                      h("span",
                        {class: `swatch ${one.className || ""} ${one.dashed ? "dashed" : ""}`}),
                      one.name))) :
          null);
}
