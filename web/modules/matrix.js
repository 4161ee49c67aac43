// Matrices of a document: nested arrays, or base64 with half floats or bytes. They are decoded when
// they are first read, so that a large document opens fast.

let halves = null;

// The value of every half float.
function halfTable() {
  if (halves) return halves;
  halves = new Float32Array(65536);
  for (let bits = 0; bits < 65536; ++bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0)
      halves[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31)
      halves[bits] = fraction ? NaN : sign * Infinity;
    else
      halves[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halves;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export class Matrix {
  constructor(rows, columns, values) {
    this.rows = rows;
    this.columns = columns;
    this.values = values || new Float32Array(rows * columns);
  }

  at(row, column) {
    return this.values[row * this.columns + column];
  }

  row(row) {
    return this.values.subarray(row * this.columns, (row + 1) * this.columns);
  }

  // The columns [begin, end) as a matrix of their own.
  slice(begin, end) {
    const part = new Matrix(this.rows, end - begin);
    for (let row = 0; row < this.rows; ++row) part.row(row).set(this.row(row).subarray(begin, end));
    return part;
  }

  // The largest finite absolute value.
  largest() {
    let largest = 0;
    for (const value of this.values) {
      const size = Math.abs(value);
      if (size > largest && size < Infinity) largest = size;
    }
    return largest;
  }
}

// A matrix of the document; null if it is absent or its size does not fit its data.
export function decodeMatrix(raw) {
  if (!raw) return null;
  if (Array.isArray(raw)) {
    const rows = raw.length;
    const columns = rows && Array.isArray(raw[0]) ? raw[0].length : 0;
    const matrix = new Matrix(rows, columns);
    for (let row = 0; row < rows; ++row) {
      if (!Array.isArray(raw[row]) || raw[row].length !== columns) return null;
      // JSON has no infinity: a masked score is null.
      for (let column = 0; column < columns; ++column) {
        const value = raw[row][column];
        matrix.values[row * columns + column] = value === null ? -Infinity : value;
      }
    }
    return matrix;
  }
  const [rows, columns] = Array.isArray(raw.shape) ? raw.shape : [];
  if (!(rows >= 0 && columns >= 0)) return null;
  const matrix = new Matrix(rows, columns);
  if (typeof raw.f16 === "string") {
    const bytes = bytesOf(raw.f16);
    if (bytes.length !== rows * columns * 2) return null;
    const table = halfTable();
    for (let i = 0; i < rows * columns; ++i) {
      matrix.values[i] = table[bytes[2 * i] | (bytes[2 * i + 1] << 8)];
    }
    return matrix;
  }
  if (typeof raw.u8 === "string") {
    const bytes = bytesOf(raw.u8);
    if (bytes.length !== rows * columns) return null;
    const scale = typeof raw.scale === "number" ? raw.scale : 1 / 255;
    for (let i = 0; i < bytes.length; ++i) matrix.values[i] = bytes[i] * scale;
    return matrix;
  }
  return null;
}

// Joins pieces into words: the weights of the pieces of a key word are added, the rows of the
// pieces of a query word are averaged.
export function joinWords(matrix, queryWords, keyWords) {
  const joined = new Matrix(queryWords.length, keyWords.length);
  queryWords.forEach(([rowBegin, rowEnd], row) => {
    keyWords.forEach(([columnBegin, columnEnd], column) => {
      let sum = 0;
      for (let r = rowBegin; r < rowEnd; ++r) {
        for (let c = columnBegin; c < columnEnd; ++c) sum += matrix.at(r, c);
      }
      joined.values[row * keyWords.length + column] = sum / (rowEnd - rowBegin);
    });
  });
  return joined;
}

export function meanOf(matrices) {
  const mean = new Matrix(matrices[0].rows, matrices[0].columns);
  for (const matrix of matrices) {
    for (let i = 0; i < mean.values.length; ++i) mean.values[i] += matrix.values[i];
  }
  for (let i = 0; i < mean.values.length; ++i) mean.values[i] /= matrices.length;
  return mean;
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; ++i) sum += a[i] * b[i];
  return sum;
}

export function softmax(scores) {
  let largest = -Infinity;
  for (const score of scores) largest = Math.max(largest, score);
  const exponentials = Array.from(scores, (score) => Math.exp(score - largest));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  return {largest, exponentials, sum, weights: exponentials.map((e) => e / sum)};
}
