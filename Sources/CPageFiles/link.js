// The connection to the daemon: calls over one WebSocket, notifications, and reconnecting; and how values are written.

/** A call that the server refused; the message is the server's. */
export class Refusal extends Error {}

/** A call that was not answered because the connection was lost. */
export class Lost extends Error {
  constructor() { super("The connection was lost before the server replied. Look at the list before trying again."); }
}

const patience = 60_000; // A reply that takes longer is not coming: the connection is made anew.
const connectTime = 10_000;

/** Whether the server did not take the token, as opposed to a failure of the call. */
const isOfToken = (error) => error.message === "Unauthorized" || error.message.startsWith("Too many wrong tokens");

export class Link {
  /** `null` calls without a token, for servers that need none. */
  token = null;
  /** idle, connecting, open, lost or refused. */
  state = "idle";
  /** When the next attempt begins, in the milliseconds of Date.now(). */
  nextAttempt = 0;
  onState = () => {};
  onNote = () => {};
  #socket = null;
  #calls = new Map();
  #id = 0;
  #delay = 0;
  #timer = 0;
  #watch = 0;

  get url() {
    // Relative to the page, so that a proxy can put both below a path.
    const url = new URL("jsonrpc", location.href.split(/[?#]/)[0]);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  get isOpen() { return this.state === "open"; }

  #setState(state, detail) {
    this.state = state;
    this.onState(state, detail);
  }

  connect() {
    clearTimeout(this.#timer);
    this.#drop();
    this.#setState("connecting");
    let socket;
    try {
      socket = new WebSocket(this.url);
    } catch (error) {
      this.#lose();
      return;
    }
    this.#socket = socket;
    this.#watch = setTimeout(() => this.#lose(), connectTime);
    socket.onopen = () => this.#greet(socket);
    socket.onclose = () => { if (socket === this.#socket) this.#lose(); };
    socket.onmessage = (event) => { if (socket === this.#socket) this.#receive(event.data); };
  }

  /** Ends the connection for good, as when the token is forgotten. */
  close() {
    clearTimeout(this.#timer);
    this.#drop();
    this.#setState("idle");
  }

  /** The first call shows whether the token is right. */
  async #greet(socket) {
    try {
      const version = await this.#send([["aria2.getVersion"]])[0];
      if (socket !== this.#socket) return;
      clearTimeout(this.#watch);
      this.#delay = 0;
      this.#setState("open", version);
    } catch (error) {
      if (socket !== this.#socket) return;
      if (!isOfToken(error)) return this.#lose();
      this.#drop();
      this.#setState("refused", error.message);
    }
  }

  #drop() {
    clearTimeout(this.#watch);
    const socket = this.#socket;
    this.#socket = null;
    if (socket) socket.close();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.reject(new Lost());
  }

  #lose() {
    this.#drop();
    // From 1 to 15 seconds; a little chance keeps many pages from coming back at the same moment.
    this.#delay = Math.min(15_000, Math.max(1000, this.#delay * 2));
    const wait = Math.min(15_000, this.#delay * (1 + Math.random() / 10));
    this.nextAttempt = Date.now() + wait;
    this.#timer = setTimeout(() => this.connect(), wait);
    this.#setState("lost");
  }

  connectNow() {
    if (this.state === "lost") this.connect();
  }

  #receive(text) {
    let message;
    try { message = JSON.parse(text); } catch { return; }
    for (const reply of Array.isArray(message) ? message : [message]) {
      if (reply === null || typeof reply !== "object") continue;
      if (reply.method) {
        this.onNote(reply.method);
      } else if (this.#calls.has(reply.id)) {
        const call = this.#calls.get(reply.id);
        this.#calls.delete(reply.id);
        clearTimeout(call.timer);
        if (reply.error) call.reject(new Refusal(String(reply.error.message ?? "The server gave no reason.")));
        else call.resolve(reply.result);
      } else if (reply.error) {
        // A message that was refused as a whole has no id.
        const calls = [...this.#calls.values()];
        this.#calls.clear();
        for (const call of calls) {
          clearTimeout(call.timer);
          call.reject(new Refusal(String(reply.error.message)));
        }
      }
    }
  }

  #send(calls) {
    const socket = this.#socket;
    const prefix = this.token === null ? [] : ["token:" + this.token];
    const messages = calls.map(([method, ...parameters]) => (
      { jsonrpc: "2.0", id: ++this.#id, method, params: [...prefix, ...parameters] }));
    const replies = messages.map((message) => new Promise((resolve, reject) => {
      const timer = setTimeout(() => { if (socket === this.#socket) this.#lose(); }, patience);
      this.#calls.set(message.id, {
        resolve: (value) => { clearTimeout(timer); resolve(value); },
        reject: (error) => { clearTimeout(timer); reject(error); }, timer,
      });
    }));
    socket.send(JSON.stringify(messages.length === 1 ? messages[0] : messages));
    return replies;
  }

  /** Sends calls as one message. Returns for each what Promise.allSettled does. */
  batch(calls) {
    if (!this.isOpen) return Promise.resolve(calls.map(() => ({ status: "rejected", reason: new Lost() })));
    return Promise.allSettled(this.#send(calls));
  }

  /** Calls one method. */
  call(method, ...parameters) {
    if (!this.isOpen) return Promise.reject(new Error("There is no connection to the server: nothing was changed."));
    return this.#send([[method, ...parameters]])[0];
  }
}

// Values as text.

const whole = new Intl.NumberFormat("en");
const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const count = (number) => whole.format(number);

export function bytes(number) {
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(number) : number.toFixed(number < 10 ? 2 : number < 100 ? 1 : 0)} ${units[unit]}`;
}

export const speed = (number) => bytes(number) + "/s";

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const s = Math.ceil(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86_400)} days`;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The name of a type as words: “HTTPSource” is “HTTP source”. */
export const inWords = (name) => capital(name.replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$& ")
  .replace(/\b[A-Z](?=[a-z])/g, (letter) => letter.toLowerCase()).replace("SQ lite", "SQLite"));

/** A URL without what may be secret: its query, fragment, name and password. */
export function shortURL(text) {
  try {
    const url = new URL(text);
    return `${url.protocol}//${url.host}${decodeSafely(url.pathname)}`;
  } catch {
    return text.split(/[?#]/)[0];
  }
}

function decodeSafely(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

const advice = {
  3: "check the URL", 22: "try again later, or tell the site", 29: "try again later",
  24: "the site wants you to log in, such as with a header line",
};

/** A message that only tells a status of HTTP says nothing of what to do. */
function advised(message, code) {
  return /^the server answered \d+\.?$/i.test(message) && advice[code]
    ? `${message.replace(/\.$/, "")}: ${advice[code]}` : message;
}

/** What the page shows of a download, made of aria2's strings. */
export function readStatus(status) {
  const file = status.files?.[0] ?? {};
  const urls = (file.uris ?? []).map((uri) => uri.uri);
  const own = status.downpipe ?? {};
  const path = file.path ?? "";
  const received = Number(status.completedLength) || 0;
  const total = Number(status.totalLength) || 0;
  const rate = Number(status.downloadSpeed) || 0;
  const name = path.slice(path.lastIndexOf("/") + 1) || (urls[0] ? shortURL(urls[0]) : status.gid);
  return {
    gid: status.gid, state: status.status, received, total, rate, path, urls: urls.slice(0, 20), name,
    // Of a URL that is too long, the end says most.
    split: name.lastIndexOf("/") + 1,
    part: total > 0 ? Math.min(1, received / total) : null,
    left: rate > 0 && total > received ? (total - received) / rate : NaN,
    priority: own.priority ?? null, reason: own.reason ?? "", step: own.step ?? "",
    error: advised(own.error?.message || status.errorMessage || "", status.errorCode),
  };
}

export const statusKeys = [
  "gid", "status", "totalLength", "completedLength", "downloadSpeed", "files", "errorCode", "errorMessage", "downpipe",
];

export const id = (name) => document.getElementById(name);

/** Makes an element; children are elements or text, which never becomes markup. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Sets text only if it is new, so that nothing is laid out or announced again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
