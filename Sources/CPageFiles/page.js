// The page of the daemon: signing in, what is polled, and what stands around the lists.

import { count, id, inWords, Link, make, readStatus, setText, speed, statusKeys } from "./link.js";
import { History, Queue } from "./lists.js";
import { AddDialog } from "./add.js";

const link = new Link();
const stored = "downpipe.token";

const app = {
  link, methods: new Set(), folder: "", isReady: false,
  wake: (what, delay) => poll.wake(what, delay),

  /** Calls a method for a button. Returns its result, or `undefined` after it has told of a failure. */
  async act(method, done, ...parameters) {
    const key = `${method} ${parameters[0] ?? ""}`;
    if (this.underWay.has(key)) return undefined;
    this.underWay.add(key);
    try {
      const result = await link.call(method, ...parameters);
      if (done) this.announce(done);
      return result;
    } catch (error) {
      this.notice(error.message, true);
      return undefined;
    } finally {
      this.underWay.delete(key);
      poll.isNoted = true;
      poll.wake("all", 0);
    }
  },
  underWay: new Set(),

  /** Says something to those who do not see that it happened. */
  announce(text) { id("announcer").textContent = text; },

  /** Shows a message. An error stays until it is closed. */
  notice(text, isError = false) {
    const box = id("notices");
    const close = make("button", { type: "button", "aria-label": "Close the message" }, "×");
    const item = make("div", { className: isError ? "notice bad" : "notice" }, make("p", {}, text), close);
    close.addEventListener("click", () => item.remove());
    box.append(item);
    while (box.children.length > 4) box.firstElementChild.remove();
    if (!isError) setTimeout(() => item.remove(), 6000);
    this.announce(text);
  },
};

// Signing in.

function storage(kind) {
  // Browsers that keep nothing for pages throw even when the storage is only named.
  try { return window[kind]; } catch { return null; }
}

const lastingToken = () => storage("localStorage")?.getItem(stored);
const storedToken = () => lastingToken() ?? storage("sessionStorage")?.getItem(stored);

function keepToken(token, isLasting) {
  for (const kind of ["localStorage", "sessionStorage"]) storage(kind)?.removeItem(stored);
  if (token === null) return;
  try { storage(isLasting ? "localStorage" : "sessionStorage")?.setItem(stored, token); } catch { /* Full. */ }
}

/** Takes the token of the address, where it must not stay: others could read it there. */
function tokenOfAddress() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname + location.search);
  try { return decodeURIComponent(found[1]); } catch { return found[1]; }
}

function start() {
  const given = tokenOfAddress();
  if (given !== null) keepToken(given, lastingToken() != null);
  // Without a token, a server that needs none lets the page in, and others ask for it.
  link.token = given ?? storedToken() ?? null;
  link.connect();
}

function showSignIn(error) {
  app.isReady = false;
  for (const name of ["views", "totals", "commands", "banner"]) id(name).hidden = true;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  id("sign-in").hidden = false;
  setText(id("token-error"), error);
  if (error) id("token").setAttribute("aria-invalid", "true");
  else id("token").removeAttribute("aria-invalid");
  id("token").focus();
  id("token").select();
}

function showViews() {
  const isFirst = !app.isReady;
  app.isReady = true;
  id("sign-in").hidden = true;
  id("token").value = "";
  for (const name of ["views", "totals", "commands"]) id(name).hidden = false;
  if (isFirst) chart.resize();
}

link.onState = (state, detail) => {
  const texts = { connecting: "Connecting…", open: "Connected", lost: "Connection lost" };
  // While it is tried again and again, this is not said each time.
  const isTrying = state === "connecting" && link.nextAttempt > 0;
  if (!isTrying) setText(id("connection-text"), texts[state] ?? "Not connected");
  id("connection").dataset.state = state;
  id("main").classList.toggle("stale", app.isReady && state !== "open");
  switch (state) {
    case "open": {
      link.nextAttempt = 0;
      id("banner").hidden = true;
      if (link.token !== null && storedToken() !== link.token) keepToken(link.token, id("remember").checked);
      showViews();
      setText(id("server-text"), `Downpipe ${detail?.downpipe || "of an unknown version"}`);
      id("forget").hidden = link.token === null;
      poll.begin();
      break;
    }
    case "lost":
      id("banner").hidden = !id("sign-in").hidden;
      setText(id("banner-what"), app.isReady ? "The connection to the server is lost." : "The server does not answer.");
      id("banner-old").hidden = !app.isReady;
      if (!id("sign-in").hidden) setText(id("token-error"), "The server does not answer. It is tried again.");
      countDown();
      break;
    case "refused": {
      link.nextAttempt = 0;
      const isMany = detail.startsWith("Too many");
      const hadToken = link.token !== null;
      if (hadToken && !isMany) keepToken(null);
      showSignIn(isMany ? `${detail}.` : hadToken ? "The server did not take this token. Copy the line of the file "
        + ".downpipe/rpc-secret in the download folder, without anything before or after it." : "");
      break;
    }
  }
};

let counting = 0;
function countDown() {
  clearTimeout(counting);
  if (link.state === "open" || id("banner").hidden) return;
  const left = Math.ceil((link.nextAttempt - Date.now()) / 1000);
  setText(id("banner-time"), link.state === "connecting" || left <= 0 ? "Connecting…" : `Next attempt in ${left} s.`);
  counting = setTimeout(countDown, 250);
}

link.onNote = (method) => {
  poll.isNoted = true;
  if (/(Stop|Complete|Error)$/.test(method)) old.isStale = true;
  // Many come at once when many downloads change.
  poll.wake("all", 200);
};

id("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  link.token = id("token").value.trim();
  setText(id("token-error"), "");
  link.connect();
});
id("connect-now").addEventListener("click", () => link.connectNow());
id("forget").addEventListener("click", () => {
  keepToken(null);
  link.close();
  link.token = null;
  poll.end();
  showSignIn("");
});
addEventListener("online", () => link.connectNow());
addEventListener("hashchange", () => { if (/^#token=/.test(location.hash)) start(); });

// Polling. One poll is under way at most; what is asked for meanwhile is for the next one.

const poll = {
  wanted: new Set(), timer: 0, at: Infinity, isBusy: false, isNoted: true, waitingAt: 0, restAt: 0, round: 0,

  begin() {
    this.isNoted = true;
    this.restAt = 0;
    queue.isStale = old.isStale = true;
    this.wake("all", 0);
  },

  end() {
    clearTimeout(this.timer);
    this.at = Infinity;
    this.wanted.clear();
  },

  wake(what, delay) {
    this.wanted.add(what);
    this.plan(delay);
  },

  plan(delay) {
    const at = performance.now() + delay;
    if (this.isBusy || at >= this.at) return;
    clearTimeout(this.timer);
    this.at = at;
    this.timer = setTimeout(() => this.run(), delay);
  },

  async run() {
    this.at = Infinity;
    if (this.isBusy || !link.isOpen) return;
    this.isBusy = true;
    const begin = performance.now();
    // What is asked for from now on is for the next poll.
    const wanted = this.wanted.size > 0 ? this.wanted : new Set(["all"]);
    this.wanted = new Set();
    try {
      await this.read(wanted, begin);
    } catch (error) {
      console.error(error);
    }
    this.isBusy = false;
    if (!link.isOpen) return;
    const took = performance.now() - begin;
    // A slow server is given time between polls.
    const rest = Math.max(50, Math.min(2000, took / 2));
    this.plan(this.wanted.size > 0 ? rest : Math.max(rest, (document.hidden ? 10_000 : 1000) - took));
  },

  async read(wanted, begin) {
    let active = null;
    let waiting = queue.waiting;
    let isDue = false;
    if (wanted.has("all")) {
      const [stat, rows] = await link.batch([["aria2.getGlobalStat"], ["aria2.tellActive", statusKeys]]);
      if (stat.status === "rejected" || rows.status === "rejected") return;
      active = rows.value.map(readStatus);
      waiting = Number(stat.value.numWaiting) || 0;
      showStat(stat.value, active);
      const isChanged = waiting !== queue.waiting || active.length !== queue.active.length
        || active.some((row, index) => row.gid !== queue.active[index].gid);
      isDue = isChanged || this.isNoted || begin - this.waitingAt >= 2000;
    }
    const isSeen = !document.hidden && !id("panel-queue").hidden;
    const calls = isSeen ? queue.calls(isDue, active?.length, waiting) : [];
    const pages = [];
    if (calls.length > 0) {
      if (isDue) {
        this.isNoted = false;
        this.waitingAt = begin;
      }
      const replies = await link.batch(calls.map((entry) => entry.call));
      replies.forEach((reply, index) => {
        if (reply.status === "fulfilled") pages.push([calls[index].page, reply.value.map(readStatus)]);
      });
    }
    if (active || pages.length > 0) queue.take(active, waiting, pages);
    if (!document.hidden && !id("panel-history").hidden) await old.read(link);
    if (begin >= this.restAt) {
      this.restAt = begin + 30_000;
      await readRest();
    }
  },
};

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  poll.isNoted = true;
  link.connectNow();
  poll.wake("all", 0);
});

/** Reads what changes seldom. */
async function readRest() {
  const names = ["system.listMethods", "aria2.getGlobalOption", "downpipe.getPipeline"];
  const [methods, options, stages] = await link.batch(names.map((name) => [name]));
  if (methods.status === "fulfilled") app.methods = new Set(methods.value);
  if (options.status === "fulfilled") limits.show(options.value);
  pipeline.show(stages.status === "fulfilled" ? stages.value : null);
}

function showStat(stat, active) {
  const rate = Number(stat.downloadSpeed) || 0;
  const ended = Number(stat.numStoppedTotal ?? stat.numStopped) || 0;
  setText(id("total-speed"), speed(rate));
  setText(id("total-active"), count(Number(stat.numActive)));
  setText(id("total-waiting"), count(Number(stat.numWaiting)));
  setText(id("total-ended"), count(ended));
  const title = rate > 0 ? `${speed(rate)} – Downpipe` : "Downpipe";
  if (document.title !== title) document.title = title;
  old.expect(Number(stat.numStopped) || 0, ended);
  chart.add(rate);
  pipeline.count(Number(stat.numWaiting) || 0, active);
}

// Limits.

const limits = {
  isBusy: false,

  show(options) {
    app.folder = options.dir ?? "";
    if (this.isBusy || id("limits").contains(document.activeElement)) return;
    this.fill(options);
  },

  fill(options) {
    id("concurrent").value = options["max-concurrent-downloads"] ?? "";
    const limit = Number(options["max-overall-download-limit"]) || 0;
    const unit = [1073741824, 1048576].find((unit) => limit >= unit && (limit / unit * 100) % 1 === 0) ?? 1024;
    id("limit").value = limit > 0 ? limit / unit : "";
    if (limit > 0) id("limit-unit").value = unit;
  },

  say(text, isError = false) {
    setText(id("limits-said"), text);
    id("limits-said").classList.toggle("error", isError);
  },

  async set(field, changes) {
    this.isBusy = true;
    try {
      await link.call("aria2.changeGlobalOption", changes);
      const options = await link.call("aria2.getGlobalOption");
      this.fill(options);
      const limit = Number(options["max-overall-download-limit"]) || 0;
      this.say(`Now: ${options["max-concurrent-downloads"]} at once, ${limit > 0 ? speed(limit) : "no speed limit"}.`);
      field.removeAttribute("aria-invalid");
      poll.restAt = 0;
    } catch (error) {
      this.refuse(field, error.message);
    }
    this.isBusy = false;
  },

  refuse(field, text) {
    field.setAttribute("aria-invalid", "true");
    this.say(text, true);
  },

  watch() {
    id("limits").addEventListener("submit", (event) => event.preventDefault());
    id("concurrent").addEventListener("change", (event) => {
      const number = event.target.valueAsNumber;
      if (!Number.isInteger(number) || number < 1 || number > 10_000) {
        return this.refuse(event.target, "Downloads at once: a whole number from 1 to 10,000.");
      }
      this.set(event.target, { "max-concurrent-downloads": String(number) });
    });
    const setLimit = (event) => {
      const field = id("limit");
      const number = field.value === "" && !field.validity.badInput ? 0 : field.valueAsNumber;
      if (event.target !== field && number === 0) return;
      const rate = Math.round(number * Number(id("limit-unit").value));
      if (!(rate >= 0 && rate <= Number.MAX_SAFE_INTEGER)) {
        return this.refuse(field, "Speed: a number, or nothing for no limit.");
      }
      this.set(field, { "max-overall-download-limit": String(rate) });
    };
    id("limit").addEventListener("change", setLimit);
    id("limit-unit").addEventListener("change", setLimit);
  },
};

// The chart.

const chart = {
  span: 300_000, points: [], drawnAt: 0, canvas: id("chart"), isCalm: matchMedia("(prefers-reduced-motion: reduce)"),

  add(rate) {
    const now = Date.now();
    this.points.push([now, rate]);
    while (this.points.length > 1 && this.points[1][0] < now - this.span) this.points.shift();
    // The clock of a machine can be set back.
    if (this.points[0][0] > now || this.points.length > 2000) this.points.splice(0, this.points.length - 1);
    let sum = 0;
    let time = 0;
    this.points.forEach(([at, value], index) => {
      const next = this.points[index + 1]?.[0] ?? at;
      sum += value * (next - at);
      time += next - at;
    });
    setText(id("chart-now"), speed(rate));
    setText(id("chart-mean"), speed(time > 0 ? sum / time : rate));
    setText(id("chart-peak"), speed(Math.max(...this.points.map((point) => point[1]))));
    if (now - this.drawnAt >= (this.isCalm.matches ? 5000 : 900)) this.draw();
  },

  resize() {
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * scale);
    const height = Math.round(canvas.clientHeight * scale);
    if (width === 0 || (canvas.width === width && canvas.height === height)) return;
    [canvas.width, canvas.height] = [width, height];
    this.draw();
  },

  draw() {
    const { canvas, points, span } = this;
    const context = canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    const width = canvas.width / scale;
    const height = canvas.height / scale;
    if (width === 0) return;
    const now = Date.now();
    this.drawnAt = now;
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    const peak = Math.max(1, ...points.map((point) => point[1]));
    // The scale ends at a round number, with some room above the peak.
    const power = 1024 ** Math.floor(Math.log(peak) / Math.log(1024));
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024];
    const top = Math.max(1024, power * (steps.find((step) => step * power >= peak * 1.05) ?? 2048));
    const low = height - 16;
    const x = (at) => width - (now - at) / span * width;
    const y = (rate) => low - rate / top * (low - 14);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.strokeStyle = color("--line");
    context.lineWidth = 1;
    context.font = `11px ${style.fontFamily}`;
    context.fillStyle = color("--soft");
    for (const part of [0, 0.5, 1]) {
      const level = Math.round(y(top * part)) + 0.5;
      context.beginPath();
      context.moveTo(0, level);
      context.lineTo(width, level);
      context.stroke();
    }
    context.textAlign = "left";
    context.fillText(speed(top), 0, 9);
    context.fillText("−5 min", 0, height - 3);
    context.textAlign = "right";
    context.fillText("now", width, height - 3);
    if (points.length === 0) return;
    context.beginPath();
    context.rect(0, 0, width, height);
    context.save();
    context.clip();
    context.beginPath();
    points.forEach(([at, rate], index) => {
      if (index === 0) context.moveTo(x(at), y(rate));
      else context.lineTo(x(at), y(rate));
    });
    context.lineTo(width, y(points.at(-1)[1]));
    context.strokeStyle = color("--accent");
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.stroke();
    context.lineTo(width, low);
    context.lineTo(x(points[0][0]), low);
    context.globalAlpha = 0.15;
    context.fillStyle = color("--accent");
    context.fill();
    context.restore();
  },

  watch() {
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  },
};

// The pipeline.

const pipeline = {
  shown: null, waiting: 0, active: [], counts: [],

  show(stages) {
    const text = JSON.stringify(stages);
    if (text === this.shown) return;
    this.shown = text;
    this.counts = [];
    const flow = stages?.flow ?? [];
    const isOf = (...kinds) => flow.filter((stage) => kinds.includes(stage.kind));
    const parts = [
      ["Waiting", isOf("scheduling", "admission", "gate"), () => this.waiting],
      ["Transfer", isOf("source"), () => this.active.filter((row) => !row.step).length],
      ["Storage", isOf("storage"), (stage) => this.at(stage.name)],
      ...isOf("step").map((step) => ["Step", [step], () => this.at(step.name)]),
    ];
    if (flow.length === 0) {
      parts.splice(2, 1, ["Steps", [], () => this.active.filter((row) => row.step).length]);
    }
    id("flow").replaceChildren(...parts.filter(([, list]) => list.length > 0 || flow.length === 0).map((part) => {
      const [title, list, number] = part;
      const told = make("span", { className: "number" });
      this.counts.push([told, () => number(list[0])]);
      return make("li", {}, make("p", { className: "part" }, make("span", {}, title), told), make("ul", {},
        ...list.map((stage) => this.box(stage))));
    }));
    const beside = stages?.beside ?? [];
    id("beside").replaceChildren(...beside.map((stage) => this.box(stage)));
    id("beside-title").hidden = beside.length === 0;
    setText(id("panel-pipeline").querySelector(".hint"), stages
      ? "A download passes these stages from the first to the last."
      : "This server does not tell its stages; this is where its downloads are.");
    this.fill();
  },

  box(stage) {
    return make("li", { className: "stage" }, make("strong", {}, inWords(stage.name)),
      ...(stage.summary ? [make("span", {}, stage.summary)] : []));
  },

  at(step) { return this.active.filter((row) => row.step === step).length; },

  count(waiting, active) {
    this.waiting = waiting;
    this.active = active;
    this.fill();
  },

  fill() {
    for (const [element, number] of this.counts) {
      const value = number();
      setText(element, count(value));
      element.parentElement.parentElement.classList.toggle("busy", value > 0);
    }
  },
};

// Views.

const tabs = [...id("tabs").querySelectorAll("[role=tab]")];
const isWide = matchMedia("(min-width: 66rem)");

function choose(tab, hasFocus = false) {
  for (const other of tabs) {
    const isChosen = other === tab;
    other.setAttribute("aria-selected", isChosen);
    other.tabIndex = isChosen ? 0 : -1;
    const panel = id(other.getAttribute("aria-controls"));
    panel.hidden = !isChosen && !(isWide.matches && panel === id("panel-speed"));
  }
  if (hasFocus) tab.focus();
  poll.isNoted = true;
  poll.wake("all", 0);
}

function fitViews() {
  const aside = id("panel-speed");
  const chosen = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
  id("tab-speed").hidden = isWide.matches;
  // Beside the lists it is no tab, and a landmark of its own.
  if (isWide.matches) aside.removeAttribute("role");
  else aside.setAttribute("role", "tabpanel");
  choose(isWide.matches && chosen === id("tab-speed") ? tabs[0] : chosen);
}

id("tabs").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) choose(tab);
});
id("tabs").addEventListener("keydown", (event) => {
  const seen = tabs.filter((tab) => !tab.hidden);
  const index = seen.indexOf(document.activeElement);
  const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(seen.at(to % seen.length), true);
});

id("pause-all").addEventListener("click", () => app.act("aria2.pauseAll", "Paused all downloads"));
id("resume-all").addEventListener("click", () => app.act("aria2.unpauseAll", "Resumed all downloads"));
id("details-close").addEventListener("click", () => id("details").close());

const queue = new Queue(app);
const old = new History(app);
new AddDialog(app);
limits.watch();
chart.watch();
isWide.addEventListener("change", fitViews);
fitViews();
start();
