// Search without a server: browsers refuse web workers to pages opened from the file system, so there a hidden frame
// takes the worker's place. Material looks for a script of this name and would otherwise fetch one from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      addEventListener("message", event => {
        if (event.source !== inside) return
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      const load = `url => new Promise((done, failed) => {
        const script = document.createElement("script")
        Object.assign(script, { src: url, onload: done, onerror: failed })
        document.body.appendChild(script)
      })`
      inside.document.open()
      inside.document.write(`<html><body><script>
        postMessage = parent.postMessage.bind(parent)
        const load = ${load}
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve())
      </script></body></html>`)
      inside.document.close()
      this.ready = inside.eval("load")(url)
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
