// The ground of a page: its surface and the lines on it.

import * as THREE from "three";

const LOW = new THREE.Color(0x8f9a86);
const HIGH = new THREE.Color(0xf3e9d6);

/** Returns a color for each point of the ground, by its height. */
function tints(heights, low, high) {
  const colors = new Float32Array(3 * heights.length);
  const tint = new THREE.Color();
  heights.forEach((z, k) => tint.lerpColors(LOW, HIGH, (z - low) / (high - low)).toArray(colors, 3 * k));
  return colors;
}

/** Returns the surface of the ground, if the page has one, and its lines. */
export function grid(ground, arrays, size) {
  const found = [];
  const [rows, columns] = arrays[ground.surface].shape;
  if (rows > 1 && columns > 1) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(arrays[ground.surface].values, 3));
    const faces = [];
    for (let i = 0; i + 1 < rows; i++) {
      for (let j = 0; j + 1 < columns; j++) {
        const [a, b] = [i * columns + j, (i + 1) * columns + j];
        faces.push(a, b, b + 1, a, b + 1, a + 1);
      }
    }
    geometry.setIndex(faces);
    geometry.computeVertexNormals();
    const heights = Float32Array.from({ length: rows * columns }, (_, k) => arrays[ground.surface].values[3 * k + 2]);
    const [low, high] = [heights.reduce((a, b) => Math.min(a, b)), heights.reduce((a, b) => Math.max(a, b))];
    const relief = high - low > 0.01 * size;
    if (relief) geometry.setAttribute("color", new THREE.BufferAttribute(tints(heights, low, high), 3));
    const look = { color: relief ? 0xffffff : 0xd9d5cc, vertexColors: relief, roughness: 1, side: THREE.DoubleSide, polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 2 };
    const surface = new THREE.Mesh(geometry, new THREE.MeshStandardMaterial(look));
    surface.receiveShadow = true;
    found.push(surface);
  }
  const { shape, values } = arrays[ground.lines];
  const ends = [];
  for (let line = 0; line < shape[0]; line++) {
    for (let k = 0; k + 1 < shape[1]; k++) {
      const at = 3 * (line * shape[1] + k);
      ends.push(...values.subarray(at, at + 6));
    }
  }
  const lifted = Float32Array.from(ends, (x, i) => (i % 3 === 2 ? x + 0.001 * size : x));
  const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(lifted, 3));
  found.push(new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: 0xb9b4a8 })));
  return found;
}
