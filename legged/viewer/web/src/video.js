// Records a canvas as a video, encoded by the browser.

const TYPES = ["video/mp4;codecs=avc1", "video/webm;codecs=vp9", "video/webm"];
const RATE = 30; // [1/s], largest frame rate
const BITS = 8e6; // [1/s], bit rate

/** Records a canvas until `stop` is called, and then downloads the video as a file. */
export class Video {
  /**
   * Starts to record; throws an error if the browser cannot record videos.
   *
   * @param canvas - The canvas.
   * @param name - Name of the file without its suffix.
   * @param ended - Function that is called at the end with "", or with the reason why no file was stored.
   */
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
