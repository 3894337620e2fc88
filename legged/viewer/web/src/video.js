// Videos of a canvas, which the browser encodes.

const TYPES = ["video/mp4;codecs=avc1", "video/webm;codecs=vp9", "video/webm"];
const RATE = 30; // pictures a second
const BITS = 8e6; // a second

/** Records what a canvas shows until `stop`, and then stores it as a file or says why it cannot. */
export class Video {
  /** Takes the name of the file without its suffix, and what to call at the end with "" or the reason of a failure. */
  constructor(canvas, name, ended) {
    const type = window.MediaRecorder && TYPES.find((each) => MediaRecorder.isTypeSupported(each));
    if (!type) throw new Error("this browser records no video");
    const parts = [];
    this.recorder = new MediaRecorder(canvas.captureStream(RATE), { mimeType: type, videoBitsPerSecond: BITS });
    this.recorder.ondataavailable = (event) => parts.push(event.data);
    this.recorder.onstop = () => {
      const video = new Blob(parts, { type });
      if (video.size) this.save(video, `${name}.${type.startsWith("video/mp4") ? "mp4" : "webm"}`);
      ended(video.size ? "" : "this browser has drawn no picture meanwhile");
    };
    this.recorder.onerror = (event) => ended(event.error?.message ?? "this browser cannot encode the video");
    this.recorder.start();
  }

  stop() {
    if (this.recorder.state !== "inactive") this.recorder.stop();
  }

  save(video, name) {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(video), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
}
