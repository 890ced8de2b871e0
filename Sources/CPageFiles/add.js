// The dialog that adds downloads, and what is dropped or pasted on the page.

import { capital, count, id, make, setText } from "./link.js";

const most = 2_000_000; // Larger files are no lists of URLs that anyone wants in a dialog.
const mostMetalink = 1_500_000; // In Base64 it has to fit into a message, which has at most 2 MiB.
const linesOfMessage = 200;
const sizeOfMessage = 500_000;

export class AddDialog {
  constructor(app) {
    this.app = app;
    this.isBusy = false;
    for (const name of ["add", "urls", "gutter", "folder", "name", "headers", "paused", "file"]) this[name] = id(name);
    this.errors = id("urls-errors");
    this.failed = new Set();
    id("open-add").addEventListener("click", () => this.open());
    id("add-close").addEventListener("click", () => this.add.close());
    id("add-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.urls.addEventListener("input", () => this.edited());
    this.urls.addEventListener("scroll", () => { this.gutter.scrollTop = this.urls.scrollTop; });
    this.urls.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit();
    });
    this.file.addEventListener("change", () => {
      this.takeFiles([...this.file.files]);
      this.file.value = "";
    });
    this.watchDrops();
  }

  open(text = "") {
    if (text) {
      const old = this.urls.value.trimEnd();
      this.urls.value = old ? `${old}\n${text}` : text;
    }
    if (!this.add.open) {
      this.folder.placeholder = this.app.folder || "the download folder";
      this.say("");
      this.add.showModal();
    }
    this.edited();
    this.urls.focus();
  }

  get lines() { return this.urls.value.split("\n"); }

  edited() {
    // What was said of lines holds only as long as they stay as they are.
    if (this.failed.size > 0) {
      this.failed.clear();
      this.errors.replaceChildren();
      this.urls.removeAttribute("aria-invalid");
    }
    this.number();
    const filled = this.lines.filter((line) => line.trim()).length;
    this.name.disabled = filled > 1;
    setText(id("add-submit"), filled > 1 ? `Add ${count(filled)}` : "Add");
  }

  number() {
    const mark = (_, index) => `${this.failed.has(index) ? "⚠ " : ""}${index + 1}`;
    setText(this.gutter, this.lines.map(mark).join("\n"));
    this.gutter.scrollTop = this.urls.scrollTop;
  }

  say(text) { setText(id("add-error"), text); }

  /** The options that the fields give. */
  options(isSingle) {
    const options = {};
    const folder = this.folder.value.trim();
    const name = this.name.value.trim();
    const header = this.headers.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (folder) options.dir = folder;
    if (name && isSingle) options.out = name;
    if (header.length > 0) options.header = header;
    if (this.paused.checked) options.pause = "true";
    return options;
  }

  async submit() {
    const lines = this.lines.map((line) => line.trim()).filter(Boolean);
    if (this.isBusy) return;
    if (lines.length === 0) {
      this.say("Write at least one URL.");
      this.urls.focus();
      return;
    }
    const options = this.options(lines.length === 1);
    const submit = id("add-submit");
    this.isBusy = true;
    this.urls.readOnly = true;
    submit.disabled = true;
    const failures = [];
    let done = 0;
    for (let index = 0; index < lines.length;) {
      const part = [];
      for (let size = 0; index < lines.length && part.length < linesOfMessage && size < sizeOfMessage; index += 1) {
        part.push(lines[index]);
        size += lines[index].length + 200;
      }
      if (lines.length > linesOfMessage) this.say(`Adding ${count(index)} of ${count(lines.length)}…`);
      const replies = await this.app.link.batch(part.map((line) => (
        ["aria2.addUri", line.split("\t").map((url) => url.trim()).filter(Boolean), options])));
      replies.forEach((reply, place) => {
        if (reply.status === "fulfilled") done += 1;
        // aria2's sentence comes first, and the reason after it.
        else failures.push([part[place], capital(reply.reason.message.replace(/^No URI to download\. (?=.)/, ""))]);
      });
      this.app.wake("all", 0);
    }
    this.isBusy = false;
    this.urls.readOnly = false;
    submit.disabled = false;
    this.say("");
    if (done > 0) this.app.notice(done === 1 ? "Added one download" : `Added ${count(done)} downloads`);
    this.urls.value = failures.map(([line]) => line).join("\n");
    this.edited();
    if (failures.length > 0) return this.showFailures(failures);
    this.name.value = "";
    this.add.close();
  }

  showFailures(failures) {
    this.failed = new Set(failures.keys());
    this.number();
    this.urls.setAttribute("aria-invalid", "true");
    const items = failures.slice(0, 200).map(([, message], index) => {
      const button = make("button", { type: "button" }, `Line ${index + 1}`);
      button.addEventListener("click", () => this.select(index));
      return make("li", {}, button, ` ${message}`);
    });
    if (failures.length > 200) items.push(make("li", {}, `…and ${count(failures.length - 200)} more lines`));
    this.errors.replaceChildren(...items);
    this.say(failures.length > 1 ? `${count(failures.length)} lines were not added.` : "This line was not added.");
    this.select(0);
  }

  select(index) {
    const lines = this.lines;
    const start = lines.slice(0, index).reduce((sum, line) => sum + line.length + 1, 0);
    this.urls.focus();
    this.urls.setSelectionRange(start, start + lines[index].length);
    const height = parseFloat(getComputedStyle(this.urls).lineHeight);
    this.urls.scrollTop = Math.max(0, (index - 2) * height);
  }

  // Files, drops and pasting.

  async takeFiles(files) {
    let text = "";
    for (const file of files.slice(0, 100)) {
      if (/\.(metalink|meta4)$/i.test(file.name)) {
        await this.addMetalink(file);
      } else if (file.size > most) {
        this.app.notice(`${file.name} was not read: it has more than 2 MB, and should be a list of URLs.`, true);
      } else {
        const content = await file.text();
        if (content.includes("\0")) {
          this.app.notice(`${file.name} was not read: it is no text. Give a list of URLs, or a Metalink file.`, true);
        } else {
          text += `${listed(content)}\n`;
        }
      }
    }
    text = text.trimEnd();
    if (text) this.open(text);
  }

  async addMetalink(file) {
    if (file.size > mostMetalink) {
      this.app.notice(`${file.name} was not added: a Metalink file has at most 1.5 MB here.`, true);
      return;
    }
    try {
      const base64 = await new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
        reader.onerror = () => reject(new Error("The browser could not read the file."));
        reader.readAsDataURL(file);
      });
      const options = this.add.open ? this.options(false) : {};
      const gids = await this.app.link.call("aria2.addMetalink", base64, options);
      const number = gids.length === 1 ? "one download" : `${count(gids.length)} downloads`;
      this.app.notice(`Added ${number} from ${file.name}`);
      this.app.wake("all", 0);
      if (this.add.open && !this.urls.value.trim()) this.add.close();
    } catch (error) {
      this.app.notice(`${file.name} was not added: ${error.message}`, true);
    }
  }

  watchDrops() {
    const veil = id("drop");
    const isField = (target) => target instanceof Element && target.closest("input, textarea");
    const fits = (event) => {
      if (!this.app.isReady) return false;
      const types = event.dataTransfer?.types ?? [];
      if (types.includes("Files")) return true;
      // Text that is dropped into a field belongs there.
      return !isField(event.target) && (types.includes("text/uri-list") || types.includes("text/plain"));
    };
    let timer = 0;
    const show = (isShown) => {
      clearTimeout(timer);
      veil.hidden = !isShown;
      // Browsers do not always say that a drag has left the window.
      if (isShown) timer = setTimeout(() => { veil.hidden = true; }, 400);
    };
    addEventListener("dragover", (event) => {
      if (!fits(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      show(true);
    });
    addEventListener("drop", (event) => {
      show(false);
      if (!fits(event)) return;
      event.preventDefault();
      const files = [...event.dataTransfer.files];
      if (files.length > 0) return this.takeFiles(files);
      const text = listed(event.dataTransfer.getData("text/uri-list") || event.dataTransfer.getData("text/plain"));
      if (text) this.open(text);
    });
    addEventListener("paste", (event) => {
      if (!this.app.isReady || isField(event.target) || document.querySelector("dialog[open]")) return;
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length > 0) return this.takeFiles(files);
      const text = listed(event.clipboardData?.getData("text/plain") ?? "");
      if (/^[a-z]+:\/\//im.test(text)) this.open(text);
    });
  }
}

/** The lines of a list, without comments and, as in aria2's lists, without options, which are indented. */
function listed(text) {
  return text.split(/\r?\n/).filter((line) => line.trim() && !/^[#\s]/.test(line)).join("\n");
}
