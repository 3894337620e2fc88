// The canvas: camera, lights, ground and obstacles, and the actors on it.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { grid } from "./ground.js";
import { meshGeometry, srgb } from "./actor.js";

export class Stage {
  constructor(canvas, page, arrays, actors) {
    this.canvas = canvas;
    this.actors = actors;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.scene = new THREE.Scene();
    this.scene.background = new THREE.Color(0xe9edf2);
    const size = Math.max(...page.runs.map((run) => run.size));
    this.size = size;
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.01 * size, 400 * size);
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.addEventListener("change", () => (this.dirty = true));
    this.addLights();
    for (const ground of page.grounds) {
      for (const object of grid(ground, arrays, size)) {
        object.position.fromArray(ground.offset);
        this.scene.add(object);
      }
    }
    for (const mesh of page.obstacles) {
      const solid = new THREE.Mesh(meshGeometry(mesh, arrays), new THREE.MeshStandardMaterial({ color: srgb(mesh.color), roughness: 0.9 }));
      solid.position.fromArray(mesh.offset);
      solid.castShadow = solid.receiveShadow = true;
      this.scene.add(solid);
    }
    this.scene.add(...actors.map((actor) => actor.root));
    this.follow = true;
    this.place(page);
  }

  addLights() {
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0xb8b2a8, 1.6));
    this.sun = new THREE.DirectionalLight(0xffffff, 2.2);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    const reach = 2.5 * this.size;
    Object.assign(this.sun.shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, near: 0.01, far: 12 * this.size });
    this.sun.shadow.normalBias = 0.004 * this.size;
    this.sun.shadow.radius = 3;
    this.scene.add(this.sun, this.sun.target);
  }

  /** Puts the camera beside the middle of the actors. */
  place(page) {
    this.actors.forEach((actor) => actor.show(actor.times[0]));
    this.target = this.middle();
    const spread = Math.max(...this.actors.map((actor) => actor.basePosition.distanceTo(this.target)));
    this.camera.position.copy(this.target).add(new THREE.Vector3(...page.view).multiplyScalar(2.3 * this.size + 2.2 * spread));
    this.controls.target.copy(this.target);
    this.controls.update();
  }

  middle() {
    const sum = new THREE.Vector3();
    this.actors.forEach((actor) => sum.add(actor.basePosition));
    return sum.divideScalar(this.actors.length);
  }

  show(time) {
    this.actors.forEach((actor) => actor.show(time));
    const target = this.middle();
    if (this.follow) {
      const moved = target.clone().sub(this.target);
      moved.z = 0;
      this.camera.position.add(moved);
      this.controls.target.add(moved);
    }
    this.target = target;
    this.sun.target.position.copy(target);
    this.sun.position.copy(target).add(new THREE.Vector3(2.0, -2.6, 5.0).multiplyScalar(this.size));
    this.dirty = true;
  }

  render() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const size = this.renderer.getSize(new THREE.Vector2());
    if (size.x !== width || size.y !== height) {
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
      this.dirty = true;
    }
    this.controls.update();
    if (!this.dirty) return;
    this.dirty = false;
    this.renderer.render(this.scene, this.camera);
  }
}
