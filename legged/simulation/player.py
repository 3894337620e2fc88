"""The page that plays a run in a browser: no other file, no network."""

from __future__ import annotations

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>legged: run</title>
<style>
  body { margin: 0; font: 14px system-ui, sans-serif; color: #222; background: #fff; }
  canvas { display: block; width: 100vw; height: calc(100vh - 48px); touch-action: none; }
  #bar { display: flex; gap: 12px; align-items: center; height: 48px; padding: 0 14px; box-sizing: border-box; }
  #bar input { flex: 1; }
  #clock { font-family: monospace; white-space: pre; }
</style>
<canvas id="view"></canvas>
<div id="bar">
  <button id="play">pause</button><input id="at" type="range" min="0" value="0"><span id="clock"></span>
</div>
<script>
const scene = /*SCENE*/;
const view = document.getElementById("view"), at = document.getElementById("at");
const play = document.getElementById("play"), clock = document.getElementById("clock");
let k = 0, playing = true, azimuth = -60, elevation = 18, zoom = 1, last = 0;
at.max = scene.times.length - 1;
document.title = scene.title;

function axes() {
  if (scene.side) return [[1, 0, 0], [0, 0, 1]];
  const a = azimuth * Math.PI / 180, e = elevation * Math.PI / 180;
  return [[-Math.sin(a), Math.cos(a), 0],
          [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)]];
}

function draw() {
  const pen = view.getContext("2d"), scale = window.devicePixelRatio || 1;
  view.width = view.clientWidth * scale; view.height = view.clientHeight * scale;
  const [right, up] = axes(), nodes = scene.nodes[k];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const middle = [0, 1, 2].map(i => nodes.reduce((sum, p) => sum + p[i], 0) / nodes.length);
  const unit = zoom * 0.55 * Math.min(view.width, view.height) / scene.span;
  const place = p => [view.width / 2 + unit * (dot(right, p) - dot(right, middle)),
                      view.height / 2 - unit * (dot(up, p) - dot(up, middle))];
  const line = (points, color, width) => {
    pen.strokeStyle = color; pen.lineWidth = width * scale; pen.lineCap = "round"; pen.beginPath();
    points.forEach((p, i) => { const [x, y] = place(p); i ? pen.lineTo(x, y) : pen.moveTo(x, y); });
    pen.stroke();
  };
  scene.ground.forEach(points => line(points, "#b9b9b9", scene.side ? 2 : 1));
  line(scene.base, "#8fb3d9", 1);
  scene.points[k].forEach((p, i) => line([p, p.map((x, j) => x + scene.forces[k][i][j])], "#c8502d", 2));
  scene.edges.forEach(([a, b], i) => line([nodes[a], nodes[b]], scene.colors[i], 4));
  clock.textContent = scene.title + "   t = " + scene.times[k].toFixed(2).padStart(6) + " s";
  at.value = k;
}

function tick(now) {
  if (playing && now - last >= scene.interval) { last = now; k = (k + 1) % scene.times.length; draw(); }
  requestAnimationFrame(tick);
}
play.onclick = () => { playing = !playing; play.textContent = playing ? "pause" : "play"; };
at.oninput = () => { k = +at.value; playing = false; play.textContent = "play"; draw(); };
view.onpointermove = event => {
  if (!event.buttons) return;
  azimuth -= event.movementX / 3; elevation = Math.max(-10, Math.min(90, elevation + event.movementY / 3)); draw();
};
view.onwheel = event => { event.preventDefault(); zoom *= Math.exp(-event.deltaY / 800); draw(); };
window.onresize = draw;
draw(); requestAnimationFrame(tick);
</script>
</html>
"""
