"use strict";

const FIRST_FRAME_BYTES = 100;

const terminal = document.getElementById("terminal");
const ended = document.getElementById("ended");
const why = document.getElementById("why");

terminal.dataset.sessionWebsocketUrl = location.origin.replace(/^http/, "ws") + "/ws";
document.getElementById("again").addEventListener("click", () => location.reload());

/* Also listens to the connection that textual.js makes, which does not show why a session ended. */
window.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url);
    this.addEventListener("message", (event) => this.hear(event.data));
    this.addEventListener("close", () => {
      why.textContent ||= "The connection to the server is lost.";
      ended.showModal();
    });
  }

  /* textual.js does not check whether the connection is open. */
  send(data) {
    if (this.readyState === WebSocket.OPEN) {
      super.send(data);
    }
  }

  hear(data) {
    if (typeof data === "string") {
      const [type, text] = JSON.parse(data);
      if (type === "ended") {
        why.textContent = text || "The session has ended.";
      }
    } else if (data.byteLength > FIRST_FRAME_BYTES && !this.isShown) {
      /* Not earlier: while the UI starts, it assumes that it has no focus. */
      this.isShown = true;
      terminal.querySelector("textarea").focus();
    }
  }
};

/* A download needs no window, which browsers open only shortly after a key was pressed. */
const openWindow = window.open.bind(window);
window.open = (url, ...rest) => {
  if (!url.startsWith(`${location.origin}/download/`)) {
    return openWindow(url, ...rest);
  }
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  link.click();
  return null;
};

/* textual.js measures its cells when it starts, so that the fonts have to be there. */
const start = window.onload;
window.onload = async () => {
  const fonts = ["16px", "bold 16px", "italic 16px"].map((font) => document.fonts.load(`${font} "Roboto Mono"`));
  await Promise.allSettled(fonts);
  start();
};
