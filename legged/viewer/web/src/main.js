// The page of a replay: reads its data, builds scene, plots and table, and runs the timeline.

import { Actor, COLORS, FORCE } from "./actor.js";
import { readArrays } from "./data.js";
import { Plots } from "./plots.js";
import { Stage } from "./stage.js";
import { Video } from "./video.js";
import "./style.css";

const OVERLAYS = {
  forces: ["contact forces", true, FORCE],
  feet: ["contact points", false, FORCE],
  cones: ["friction cones", false, COLORS.cone],
  center: ["center of mass", false, COLORS.center],
  capture: ["capture point", false, COLORS.capture],
  support: ["support polygon", true, COLORS.support],
  footsteps: ["planned footsteps", false, COLORS.footsteps],
  path: ["path of the base", false, COLORS.path],
};
const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 4];

const find = (name) => document.getElementById(name);

function element(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

/** Returns a patch of a color, the key to what is drawn in it. */
function swatch(color) {
  const patch = element("span", { className: "swatch" });
  patch.style.background = `#${color.toString(16).padStart(6, "0")}`;
  return patch;
}

/** Returns the largest number of the form 1, 2 or 5 times a power of ten up to x. */
function round(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * ([5, 2].find((digit) => digit * power <= x) ?? 1);
}

class Replay {
  constructor(page, arrays) {
    this.forceScale = Math.min(...page.runs.map((run) => (0.7 * run.size) / (run.weight || 1)));
    this.actors = page.runs.map((run) => new Actor(run, arrays, this.forceScale));
    this.start = Math.min(...this.actors.map((actor) => actor.times[0]));
    this.end = Math.max(...this.actors.map((actor) => actor.times.at(-1)));
    this.stage = new Stage(find("canvas"), page, arrays, this.actors);
    this.plots = new Plots(find("plots"), page.plots, arrays, (time) => this.seek(time));
    Object.assign(this, { time: this.start, playing: false, speed: 1, frames: 0, shownAt: 0 });
    this.fillPanel(page);
    this.connect();
    this.seek(this.start);
    requestAnimationFrame((now) => this.frame(now));
  }

  fillPanel(page) {
    document.title = page.title;
    find("title").textContent = page.title;
    for (const table of page.tables) {
      const rows = table.rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", { textContent: cell }))));
      find("tables").append(element("h2", { textContent: table.title }), element("table", {}, ...rows));
    }
    this.fillNotes(page.notes);
    find("overlays").open = !window.matchMedia("(max-width: 760px)").matches;
    for (const [name, [label, on, color]] of Object.entries(OVERLAYS)) {
      if (!this.actors.some((actor) => actor.overlays[name].children.length)) continue;
      const box = element("input", { type: "checkbox", checked: on, id: `overlay-${name}` });
      box.addEventListener("change", () => this.toggle(name, box.checked));
      find("overlays").append(element("label", {}, box, swatch(color), name === "forces" ? `${label}, ${this.scale()}` : label));
      this.toggle(name, on);
    }
    const follow = element("input", { type: "checkbox", checked: true, id: "follow" });
    follow.addEventListener("change", () => (this.stage.follow = follow.checked));
    find("overlays").append(element("label", {}, follow, "follow the robot"));
    find("speed").append(...SPEEDS.map((x) => element("option", { value: x, textContent: `${x} x`, selected: x === 1 })));
  }

  /** One line with the first note, which unfolds to all of them. */
  fillNotes(notes) {
    if (!notes.length) return;
    const words = notes.length === 1 ? "1 note" : `${notes.length} notes`;
    const items = notes.map((note) => element("p", { textContent: note }));
    find("notes").append(element("details", {}, element("summary", { textContent: `${words}: ${notes[0]}` }), ...items));
  }

  /** Shows a note in place of the last one of the same kind; removes that one if there are no words. */
  note(kind, words) {
    find(`note-${kind}`)?.remove();
    if (words) find("notes").append(element("p", { id: `note-${kind}`, textContent: words }));
  }

  /** Returns the force that an arrow of a round length stands for. */
  scale() {
    const length = round(0.35 * this.stage.size);
    const force = Number((length / this.forceScale).toPrecision(2));
    return `${length >= 1 ? `${length} m` : `${Math.round(1000 * length) / 10} cm`} = ${force} N`;
  }

  toggle(name, on) {
    this.actors.forEach((actor) => (actor.overlays[name].visible = on));
    this.stage.dirty = true;
  }

  connect() {
    const bar = find("timeline");
    Object.assign(bar, { min: this.start, max: this.end, step: (this.end - this.start) / 2000 || 1 });
    bar.addEventListener("input", () => this.seek(Number(bar.value)));
    find("play").addEventListener("click", () => this.play(!this.playing));
    find("back").addEventListener("click", () => this.step(-1));
    find("next").addEventListener("click", () => this.step(1));
    find("record").addEventListener("click", () => this.record());
    find("speed").addEventListener("change", () => (this.speed = Number(find("speed").value)));
    document.addEventListener("keydown", (event) => {
      if (["SELECT", "INPUT"].includes(event.target.tagName) && event.target.type !== "range") return;
      const keys = { " ": () => this.play(!this.playing), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1) };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  /** Starts to record a video of the run at the chosen speed, which stops at its end; stops the present recording. */
  record() {
    if (this.video) {
      this.video.stop();
      return;
    }
    this.note("video", "");
    this.play(false);
    this.seek(this.start);
    this.stage.render();
    try {
      this.video = new Video(this.stage.canvas, document.title, (failure) => this.recorded(failure));
    } catch (error) {
      this.recorded(error.message);
      return;
    }
    find("record").classList.add("on");
    this.play(true);
  }

  /** Resets the button after a recording, and shows the reason if it has failed. */
  recorded(failure) {
    this.video = null;
    find("record").classList.remove("on");
    if (failure) this.note("video", `${failure}; legged view run.npz --video run.mp4 makes a stick-figure video of a saved run`);
  }

  play(on) {
    if (on && this.time >= this.end) this.seek(this.start);
    this.playing = on;
    find("play").textContent = on ? "❚❚" : "▶";
    find("play").title = on ? "pause (space)" : "play (space)";
  }

  step(count) {
    this.play(false);
    const actor = this.actors[0];
    const [k] = actor.sample(this.time + 1e-9);
    this.seek(actor.times[Math.min(Math.max(k + count, 0), actor.times.length - 1)]);
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.start), this.end);
    this.stage.show(this.time);
    this.plots.show(this.time);
    find("timeline").value = this.time;
    find("clock").textContent = `${this.time.toFixed(2)} s / ${this.end.toFixed(2)} s`;
  }

  frame(now) {
    const passed = Math.min((now - (this.last ?? now)) / 1000, 0.1);
    this.last = now;
    if (this.playing) {
      const time = this.time + passed * this.speed;
      const again = find("loop").checked && !this.video;
      if (time >= this.end && !again) this.play(false);
      this.seek(time < this.end ? time : again ? this.start : this.end);
    }
    this.stage.render();
    if (this.video && this.time >= this.end) this.video.stop();
    this.frames += 1;
    requestAnimationFrame((next) => this.frame(next));
  }
}

const page = JSON.parse(find("page").textContent);
readArrays(find("arrays").textContent, page.arrays)
  .then((arrays) => (window.replay = new Replay(page, arrays)))
  .catch((error) => {
    find("notes").append(element("p", { textContent: `The replay cannot be shown: ${error.message}` }));
    throw error;
  });
