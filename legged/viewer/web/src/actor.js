// One run in the scene: parts of the robot and free bodies, and overlays such as forces; `show` moves them to a time.

import * as THREE from "three";
import { toCreasedNormals } from "three/addons/utils/BufferGeometryUtils.js";

const UP = new THREE.Vector3(0, 0, 1);
export const FORCE = 0xd2452d;
export const COLORS = { center: 0x1b7f5c, capture: 0xe08a00, support: 0x2f6db5, cone: 0xb08a1e, path: 0x6f9fd0, footsteps: 0x8a3fb0 };

export class Actor {
  /** `run` is an entry of the page's data with its arrays, `opacity` below 1 makes a ghost; `forceScale` is the length of 1 N. */
  constructor(run, arrays, forceScale) {
    Object.assign(this, { run, forceScale });
    this.root = new THREE.Group();
    this.root.position.fromArray(run.offset);
    const get = (name) => arrays[run.motion[name]];
    this.times = get("times").values;
    for (const name of ["rotations", "positions", "base", "points", "forces", "center", "capture", "support", "footsteps"]) {
      this[name] = get(name).values;
    }
    this.contacts = get("points").shape[1];
    this.planned = get("footsteps").shape[1];
    this.parts = run.parts.map((part) => this.addPart(part, arrays));
    this.overlays = {};
    this.addOverlays();
    if (run.label) this.root.add((this.label = sign(run.label)));
  }

  addPart(part, arrays) {
    const group = new THREE.Group();
    for (const { mesh, rotation, position } of part.geometry) {
      const solid = new THREE.Mesh(meshGeometry(this.run.meshes[mesh], arrays), this.material(this.run.meshes[mesh].color));
      solid.quaternion.set(rotation[1], rotation[2], rotation[3], rotation[0]);
      solid.position.fromArray(position);
      solid.castShadow = solid.receiveShadow = this.run.opacity >= 1;
      group.add(solid);
    }
    this.root.add(group);
    return group;
  }

  material(color) {
    const opacity = this.run.opacity;
    const look = { roughness: 0.55, metalness: 0.15, transparent: opacity < 1, opacity, depthWrite: opacity >= 1 };
    return new THREE.MeshStandardMaterial({ color: srgb(color), ...look });
  }

  addOverlays() {
    const { size, friction } = this.run;
    const overlay = (name) => this.root.add((this.overlays[name] = new THREE.Group())) && this.overlays[name];
    const flat = (color, opacity = 1) =>
      new THREE.MeshBasicMaterial({ color, transparent: opacity < 1, opacity, side: THREE.DoubleSide, depthWrite: opacity >= 1 });
    const [feet, forces, cones] = [overlay("feet"), overlay("forces"), overlay("cones")];
    const shaft = new THREE.CylinderGeometry(0.012 * size, 0.012 * size, 1, 12).rotateX(Math.PI / 2).translate(0, 0, 0.5);
    const head = new THREE.ConeGeometry(0.032 * size, 0.09 * size, 16).rotateX(Math.PI / 2).translate(0, 0, -0.045 * size);
    const height = 0.22 * size;
    const cone = new THREE.ConeGeometry(friction * height, height, 32, 1, true).rotateX(-Math.PI / 2).translate(0, 0, height / 2);
    for (let k = 0; k < this.contacts; k++) {
      feet.add(new THREE.Mesh(new THREE.SphereGeometry(0.015 * size, 16, 12), flat(FORCE)));
      feet.children[k].material.depthTest = false; // they are inside of feet
      feet.children[k].renderOrder = 2;
      const arrow = new THREE.Group();
      const red = new THREE.MeshStandardMaterial({ color: FORCE, roughness: 0.6 });
      arrow.add(new THREE.Mesh(shaft, red), new THREE.Mesh(head, red));
      forces.add(arrow);
      cones.add(new THREE.Mesh(cone, flat(COLORS.cone, 0.3)));
      cones.children[k].quaternion.setFromUnitVectors(UP, new THREE.Vector3(...this.run.normal));
    }
    const center = overlay("center");
    center.add(new THREE.Mesh(new THREE.SphereGeometry(0.035 * size, 24, 16), flat(COLORS.center)));
    center.children[0].material.depthTest = false;
    center.children[0].renderOrder = 3;
    center.add(line(new Float32Array(6), COLORS.center));
    const capture = overlay("capture");
    capture.add(new THREE.Mesh(new THREE.TorusGeometry(0.04 * size, 0.01 * size, 8, 32), flat(COLORS.capture)));
    const support = overlay("support");
    const corners = new THREE.BufferAttribute(new Float32Array(3 * Math.max(this.contacts, 3)), 3);
    const polygon = new THREE.BufferGeometry().setAttribute("position", corners);
    support.add(new THREE.Mesh(polygon, flat(COLORS.support, 0.28)));
    support.add(new THREE.LineLoop(polygon.clone().setAttribute("position", corners), new THREE.LineBasicMaterial({ color: COLORS.support })));
    polygon.setIndex(Array.from({ length: Math.max(this.contacts - 2, 1) }, (_, k) => [0, k + 1, k + 2]).flat());
    support.children.forEach((child) => (child.frustumCulled = false));
    const footsteps = overlay("footsteps");
    for (let k = 0; k < this.planned; k++) {
      footsteps.add(new THREE.Mesh(new THREE.CircleGeometry(0.03 * size, 24), flat(COLORS.footsteps, 0.75)));
      footsteps.children[k].quaternion.setFromUnitVectors(UP, new THREE.Vector3(...this.run.normal));
    }
    overlay("path").add(line(this.base, COLORS.path));
  }

  /** Returns the index of the last sample at or before a time, and the fraction of the way to the next. */
  sample(time) {
    let [low, high] = [0, this.times.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    if (low + 1 >= this.times.length) return [low, 0];
    return [low, Math.min(Math.max((time - this.times[low]) / (this.times[low + 1] - this.times[low]), 0), 1)];
  }

  show(time) {
    const [k, fraction] = this.sample(time);
    const next = Math.min(k + 1, this.times.length - 1);
    const count = this.parts.length;
    const mix = (array, width, column) => {
      const [a, b] = [array[k * width + column], array[next * width + column]];
      return a + fraction * (b - a);
    };
    const base = [0, 1, 2].map((i) => mix(this.base, 3, i));
    this.parts.forEach((part, p) => {
      part.position.set(...[0, 1, 2].map((i) => base[i] + mix(this.positions, 3 * count, 3 * p + i)));
      const [w, x, y, z] = [0, 1, 2, 3].map((i) => mix(this.rotations, 4 * count, 4 * p + i));
      part.quaternion.set(x, y, z, w).normalize();
    });
    this.showContacts(k);
    this.showBalance(k);
    this.showFootsteps(k);
    this.basePosition = new THREE.Vector3(...base).add(this.root.position);
    this.label?.position.set(base[0], base[1], base[2] + 0.45 * this.run.size);
  }

  showContacts(k) {
    const { feet, forces, cones } = this.overlays;
    const direction = new THREE.Vector3();
    for (let c = 0; c < this.contacts; c++) {
      const at = 3 * (k * this.contacts + c);
      const point = this.points.subarray(at, at + 3);
      direction.fromArray(this.forces, at);
      const length = direction.length() * this.forceScale;
      const loaded = length > 1e-3 * this.run.size;
      feet.children[c].position.fromArray(point);
      feet.children[c].material.color.setHex(loaded ? FORCE : 0x9a9a9a);
      const arrow = forces.children[c];
      arrow.visible = loaded;
      arrow.position.fromArray(point);
      arrow.quaternion.setFromUnitVectors(UP, direction.normalize());
      arrow.children[0].scale.z = Math.max(length - 0.09 * this.run.size, 1e-6);
      arrow.children[1].position.z = length;
      cones.children[c].visible = loaded && this.run.friction > 0;
      cones.children[c].position.fromArray(point);
    }
  }

  showFootsteps(k) {
    for (let i = 0; i < this.planned; i++) {
      const at = 3 * (k * this.planned + i);
      const disc = this.overlays.footsteps.children[i];
      disc.visible = !Number.isNaN(this.footsteps[at]);
      disc.position.set(this.footsteps[at], this.footsteps[at + 1], this.footsteps[at + 2] + 0.005 * this.run.size);
    }
  }

  showBalance(k) {
    const { center, capture, support } = this.overlays;
    const c = this.center.subarray(3 * k, 3 * k + 3);
    const known = !Number.isNaN(c[0]);
    center.children.forEach((child) => (child.visible = known));
    center.children[0].position.fromArray(c);
    const points = center.children[1].geometry.attributes.position;
    points.set([...c, c[0], c[1], this.groundHeight(k, c)]);
    points.needsUpdate = true;
    const p = this.capture.subarray(3 * k, 3 * k + 3);
    capture.children[0].visible = !Number.isNaN(p[0]);
    capture.children[0].position.set(p[0], p[1], p[2] + 0.005 * this.run.size);
    const corners = Array.from(this.support.subarray(k * this.contacts, (k + 1) * this.contacts)).filter((i) => i >= 0);
    support.children.forEach((child) => (child.visible = corners.length > 1));
    if (corners.length < 2) return;
    const position = support.children[0].geometry.attributes.position;
    for (let i = 0; i < position.count; i++) {
      const at = 3 * (k * this.contacts + corners[Math.min(i, corners.length - 1)]);
      position.setXYZ(i, this.points[at], this.points[at + 1], this.points[at + 2] + 0.004 * this.run.size);
    }
    position.needsUpdate = true;
  }

  /** Returns the height of the lowest contact, over which the center of mass is drawn. */
  groundHeight(k, center) {
    let lowest = center[2];
    for (let c = 0; c < this.contacts; c++) lowest = Math.min(lowest, this.points[3 * (k * this.contacts + c) + 2]);
    return lowest;
  }
}

/** Returns a text that faces the camera. */
function sign(text) {
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  const font = "600 44px system-ui, sans-serif";
  pen.font = font;
  [canvas.width, canvas.height] = [Math.ceil(pen.measureText(text).width) + 32, 64];
  pen.font = font;
  pen.fillStyle = "#ffffffd0";
  pen.roundRect(0, 0, canvas.width, canvas.height, 14);
  pen.fill();
  pen.fillStyle = "#22272e";
  pen.textBaseline = "middle";
  pen.fillText(text, 16, 34);
  const texture = new THREE.CanvasTexture(canvas);
  texture.colorSpace = THREE.SRGBColorSpace;
  const made = new THREE.Sprite(new THREE.SpriteMaterial({ map: texture, depthTest: false, transparent: true, sizeAttenuation: false }));
  made.scale.set((0.022 * canvas.width) / canvas.height, 0.022, 1); // of the distance: as large for all robots
  made.renderOrder = 4;
  return made;
}

/** Returns a color of the page's data, whose components are those of sRGB. */
export const srgb = (color) => new THREE.Color().setRGB(...color, THREE.SRGBColorSpace);

export function line(points, color) {
  const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(points, 3));
  const made = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color }));
  made.frustumCulled = false;
  return made;
}

/** Returns the geometry of a mesh; corners between faces that meet at more than 40 degrees are drawn sharp. */
export function meshGeometry(mesh, arrays) {
  if (!mesh.geometry) {
    const plain = new THREE.BufferGeometry();
    plain.setAttribute("position", new THREE.BufferAttribute(arrays[mesh.vertices].values, 3));
    plain.setIndex(new THREE.BufferAttribute(arrays[mesh.faces].values, 1));
    mesh.geometry = toCreasedNormals(plain, 0.7);
  }
  return mesh.geometry;
}
