// Colour scales. The lightness of each scale changes evenly in one direction from zero, so they can
// be read without seeing hues; the two hues of signed values are blue and orange, which every
// common kind of colour blindness keeps apart.

const scales = {
  light: {
    weight: ["#f6f8fb", "#d3e3f3", "#94bfe0", "#4a90c8", "#1a609f", "#08306b"],
    negative: ["#f6f6f4", "#fbd9b4", "#f2a65e", "#c96a1b", "#7f3b08"],
    positive: ["#f6f6f4", "#cfe1f0", "#86b5da", "#3c7fb8", "#0d3f78"],
  },
  dark: {
    weight: ["#171b21", "#15324d", "#1b5583", "#2f82bb", "#79bbe6", "#e6f5ff"],
    negative: ["#1b1e23", "#4f2f12", "#95561c", "#dd8d3e", "#ffd3a1"],
    positive: ["#1b1e23", "#16364f", "#1f6293", "#4d9fd8", "#bfe2fb"],
  },
};

function channels(hex) {
  return [1, 3, 5].map((begin) => parseInt(hex.slice(begin, begin + 2), 16));
}

const steps = 128;
const tables = {};

// The colours of a scale: {css: texts, bytes: [r, g, b] one after another}.
function table(theme, name) {
  const key = `${theme}/${name}`;
  if (tables[key]) return tables[key];
  const stops = scales[theme][name].map(channels);
  const colors = {css: [], bytes: []};
  for (let i = 0; i <= steps; ++i) {
    const at = (i / steps) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
    colors.css.push(`rgb(${mixed.join(",")})`);
    colors.bytes.push(...mixed);
  }
  tables[key] = colors;
  return colors;
}

export function currentTheme() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

// The scale of a value and its place there. Weights are in [0, largest]; the square root keeps
// small ones visible. Signed values are in [-largest, largest].
function placeOf(value, largest, signed) {
  const share = largest > 0 && Number.isFinite(value) ? Math.min(Math.abs(value) / largest, 1) : 0;
  if (!signed) return {name: "weight", at: value > 0 ? Math.round(Math.sqrt(share) * steps) : 0};
  return {name: value < 0 ? "negative" : "positive", at: Math.round(share ** 0.75 * steps)};
}

export function weightColor(value, largest = 1) {
  const {name, at} = placeOf(value, largest, false);
  return table(currentTheme(), name).css[at];
}

export function signedColor(value, largest) {
  const {name, at} = placeOf(value, largest, true);
  return table(currentTheme(), name).css[at];
}

const images = new WeakMap();

// A canvas with one pixel for each value of a matrix.
export function imageOf(matrix, largest, signed) {
  const theme = currentTheme();
  const key = `${theme}/${largest}/${signed}`;
  const known = images.get(matrix);
  if (known && known.key === key) return known.canvas;
  const canvas = document.createElement("canvas");
  canvas.width = matrix.columns;
  canvas.height = matrix.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(matrix.columns, matrix.rows);
  const scales = {
    weight: table(theme, "weight").bytes,
    negative: table(theme, "negative").bytes,
    positive: table(theme, "positive").bytes
  };
  for (let i = 0; i < matrix.values.length; ++i) {
    const {name, at} = placeOf(matrix.values[i], largest, signed);
    image.data[4 * i] = scales[name][3 * at];
    image.data[4 * i + 1] = scales[name][3 * at + 1];
    image.data[4 * i + 2] = scales[name][3 * at + 2];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  images.set(matrix, {key, canvas});
  return canvas;
}

// Black or white, whichever can be read on a colour of the scales.
export function inkOn(color) {
  const [r, g, b] = color.match(/\d+/g).map((c) => {
    const s = Number(c) / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#10151c" : "#ffffff";
}

export function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
