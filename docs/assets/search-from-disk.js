// Browsers refuse workers on pages that were opened from disk. Run the script of the search in a hidden frame instead.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const scope = this.frame.contentWindow;
      scope.postMessage = (data) => this.onmessage?.({ data: structuredClone(data) });
      this.ready = new Promise((resolve) => {
        const script = scope.document.createElement("script");
        script.src = new URL(url, document.baseURI);
        script.onload = () => resolve(scope);
        scope.document.head.append(script);
      });
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then((scope) => scope.dispatchEvent(new scope.MessageEvent("message", { data: copy })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
