// Numbers and pieces of text as the page shows them.

// A number with a true minus sign. Digits are dropped from large numbers.
export function number(value, digits = 2) {
  if (value === -Infinity) return "−∞";
  if (value === Infinity) return "∞";
  if (value === null || value === undefined || Number.isNaN(value)) return "?";
  const size = Math.abs(value);
  const shown = size >= 1000 ? Math.max(0, digits - 2) :
      size >= 100            ? Math.max(0, digits - 1) :
                               digits;
  const text = value.toFixed(shown);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

export function percent(value) {
  const size = value * 100;
  if (!Number.isFinite(size)) return "?";
  if (size > 0 && size < 0.1) return "<0.1 %";
  return `${size.toFixed(size < 99.95 ? 1 : 0)} %`;
}

export function count(value) {
  return new Intl.NumberFormat("en").format(value);
}

// Characters that have no picture or change the direction of what follows, by their number.
const invisible =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text) {
  return String(text).replace(invisible, (c) => {
    if (c === "\n") return "↵";
    return `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const bytePiece = /^<0x([0-9A-Fa-f]{2})>$/;

// The text of a word: its pieces without the marks of spaces, byte pieces joined to characters.
export function wordText(pieces) {
  let text = "";
  let bytes = [];
  const flush = () => {
    if (bytes.length) text += new TextDecoder().decode(new Uint8Array(bytes));
    bytes = [];
  };
  for (const piece of pieces) {
    const byte = bytePiece.exec(piece);
    if (byte) {
      bytes.push(parseInt(byte[1], 16));
    } else {
      flush();
      text += String(piece).replace(/▁/g, " ");
    }
  }
  flush();
  return visible(text.trim()) || "▁";
}

const segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter() : null;

// The first characters, as readers count them, and an ellipsis if there are more.
export function shorten(text, most) {
  if (text.length <= most) return text;
  const characters = segmenter ?
      Array.from(segmenter.segment(text.slice(0, most * 20)), (part) => part.segment) :
      Array.from(text.slice(0, most * 20));
  return characters.length <= most ? text : characters.slice(0, most - 1).join("") + "…";
}

// "[0.12, −0.50, …]"
export function vectorText(values, most = 6, digits = 2) {
  const shown = Array.from(values.slice(0, most), (value) => number(value, digits));
  return `[${shown.join(", ")}${values.length > most ? ", …" : ""}]`;
}
