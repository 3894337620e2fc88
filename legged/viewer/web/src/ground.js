// The ground of a page: its surface and the lines on it.

import * as THREE from "three";

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
    const look = { color: 0xd9d5cc, roughness: 1, side: THREE.DoubleSide, polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 2 };
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
