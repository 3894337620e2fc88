// Reads the arrays of a page: one binary block, compressed with deflate, in base64, and a list of what it contains.

/** Returns a promise of the arrays by number; see `legged/viewer/packing.py` for their kinds. */
export async function readArrays(text, entries) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  return entries.map((entry) => readArray(buffer, entry));
}

function readArray(buffer, { kind, shape, start, low, step }) {
  const count = shape.reduce((product, n) => product * n, 1);
  if (kind === "float32") return { shape, values: new Float32Array(buffer, start, count) };
  if (kind === "int16") return { shape, values: new Int16Array(buffer, start, count) };
  if (kind === "uint32") return { shape, values: new Uint32Array(buffer, start, count) };
  // "quantized": column by column, differences of whole numbers modulo 2^16; 65535 stands for NaN
  const coded = new Uint16Array(buffer, start, count);
  const [rows, columns] = [shape[0], shape[0] ? count / shape[0] : 0];
  const values = new Float32Array(count);
  for (let c = 0; c < columns; c++) {
    let code = 0;
    for (let r = 0; r < rows; r++) {
      code = (code + coded[c * rows + r]) & 0xffff;
      values[r * columns + c] = code === 0xffff ? NaN : low[c] + code * step[c];
    }
  }
  return { shape, values };
}
