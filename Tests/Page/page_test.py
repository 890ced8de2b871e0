#!/usr/bin/env python3
"""Drives the page of `downpipe serve` in a headless Chromium, as a user does: by pointer, by keyboard, and when the
server is lost.

page_test.py DOWNPIPE [--screenshots FOLDER]

What the page shows is compared with what the server tells by JSON-RPC, and with the files. Only Python's standard
library is needed: Chromium is driven by the DevTools protocol over a pipe, so that it ends if this program ends.
"""
import argparse, base64, hashlib, http.server, json, os, random, re, select, shutil, signal, subprocess, sys, tempfile
import threading, time, traceback, urllib.parse, urllib.request

LIMIT = 300  # Seconds after which something hangs. Nothing is expected within a time.
SIZES = [(320, 640), (390, 844), (1280, 800), (1920, 1080)]
MANY = 10_000
MOST_ROWS = 60
ALT, SHIFT = 1, 8


class Failure(Exception):
  pass


def check(holds, what, *values):
  if not holds:
    raise Failure(what + "".join(f"\n  {value}" for value in values))


def until(what, value, *known):
  """Waits until a function returns something true, and returns that."""
  end = time.monotonic() + LIMIT
  while True:
    found = value()
    if found:
      return found
    if time.monotonic() > end:
      raise Failure(f"waited {LIMIT} s until {what}" + "".join(f"\n  {entry()}" for entry in known))
    time.sleep(0.05)


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
started = []


def launch(command, **options):
  """Starts a program that is ended with this one. A signal waits until the program is known."""
  held = []
  handlers = {number: signal.signal(number, lambda number, _: held.append(number)) for number in SIGNALS}
  try:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    started.append(process)
  finally:
    for number, handler in handlers.items():
      signal.signal(number, handler)
  for number in held:
    os.kill(os.getpid(), number)
  return process


def end(process):
  """Ends a program with everything that it has started."""
  try:
    os.killpg(process.pid, signal.SIGKILL)
  except ProcessLookupError:
    pass
  process.wait()
  started.remove(process)


class Files:
  """A web server. /quick/NAME comes at once, /held/NAME slowly until it is released, /later/NAME is missing
  at first, and /busy/NAME never comes."""

  def __init__(self):
    self.released = threading.Event()
    self.is_found = False
    self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
    self.server.daemon_threads = True
    threading.Thread(target=self.server.serve_forever, daemon=True).start()

  def url(self, path):
    return f"http://127.0.0.1:{self.server.server_port}{path}"

  @staticmethod
  def content(path):
    """The bytes of a file, other ones for each path."""
    size = 6_000_000 if path.startswith("/held/") else 300_001
    return random.Random(path).randbytes(size)

  def handler(files):
    class Handler(http.server.BaseHTTPRequestHandler):
      protocol_version = "HTTP/1.1"

      def log_message(self, *words):
        pass

      def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        is_missing = path.startswith("/later/") and not files.is_found
        if is_missing or path.startswith("/busy/"):
          self.send_response(404 if is_missing else 503)
          if not is_missing:
            self.send_header("Retry-After", "3600")
          self.send_header("Content-Length", "0")
          return self.end_headers()
        content = files.content(path)
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(span[1]) if span else 0
        end = int(span[2]) + 1 if span and span[2] else len(content)
        self.send_response(206 if span else 200)
        if span:
          self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        is_slow = path.startswith("/held/")
        try:
          while start < end:
            part = content[start:min(end, start + 4096)]
            self.wfile.write(part)
            start += len(part)
            if is_slow:
              files.released.wait(0.1)
        except OSError:
          pass
    return Handler


class Daemon:
  """`downpipe serve`, and its JSON-RPC over HTTP."""

  def __init__(self, program, folder):
    self.program, self.folder, self.port, self.process = program, folder, 0, None
    self.log = f"{folder}.log"
    self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

  def start(self):
    begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
    command = [self.program, "serve", "-d", self.folder, "--rpc-listen", f"127.0.0.1:{self.port}", "--trust-clients"]
    with open(self.log, "ab") as log:
      self.process = launch(
        command, stdout=log, stderr=log,
        env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")})

    def listening():
      with open(self.log, "rb") as log:
        log.seek(begin)
        found = re.search(rb"listening at http://127\.0\.0\.1:(\d+)/jsonrpc\n", log.read())
      check(found or self.process.poll() is None, "the server did not start", self.tail())
      return found
    self.port = int(until("the server listens", listening)[1])
    with open(f"{self.folder}/.downpipe/rpc-secret") as file:
      self.secret = file.read().strip()

  def kill(self):
    end(self.process)

  def tail(self):
    with open(self.log, errors="replace") as log:
      return "server: " + "  ".join(log.readlines()[-15:])

  @property
  def root(self):
    return f"http://127.0.0.1:{self.port}/"

  def get(self, path):
    with self.opener.open(urllib.parse.urljoin(self.root, path), timeout=LIMIT) as reply:
      return reply.headers, reply.read()

  def batch(self, calls):
    body = json.dumps([
      {"jsonrpc": "2.0", "id": index, "method": method, "params": [f"token:{self.secret}", *parameters]}
      for index, (method, *parameters) in enumerate(calls)])
    with self.opener.open(self.root + "jsonrpc", body.encode(), timeout=LIMIT) as reply:
      replies = sorted(json.load(reply), key=lambda entry: entry["id"])
    for call, entry in zip(calls, replies):
      check("result" in entry, f"the server refused {call[0]}", entry.get("error"))
    return [entry["result"] for entry in replies]

  def call(self, method, *parameters):
    return self.batch([(method, *parameters)])[0]

  def status(self, gid):
    return self.call("aria2.tellStatus", gid)

  def waiting(self, number=1000):
    return [row["gid"] for row in self.call("aria2.tellWaiting", 0, number, ["gid"])]

  def active(self):
    return [row["gid"] for row in self.call("aria2.tellActive", ["gid"])]

  def gid(self, url):
    """The download of a URL."""
    lists = self.batch([("aria2.tellActive",), ("aria2.tellWaiting", 0, 1000), ("aria2.tellStopped", 0, 1000)])
    found = [row["gid"] for rows in lists for row in rows if any(
      uri["uri"] == url for file in row["files"] for uri in file["uris"])]
    return found[0] if found else None


# What is asked of the page again and again. It is there before the page's own scripts.
TESTER = r"""
window.tester = {
  $: (selector) => document.querySelector(selector),
  plain: (value) => value instanceof Element || value,
  text: (selector) => document.querySelector(selector).textContent.trim(),
  rows: (list) => [...document.querySelectorAll(`#${list} .row:not(.probe)`)].sort((a, b) => a.index - b.index),
  row: (list, gid) => tester.rows(list).find((row) => row.row?.gid === gid),
  part: (list, gid, part) => tester.row(list, gid)?.querySelector(`[data-do=${part}]`),
  told: (list) => tester.rows(list).filter((row) => row.row).map((row) => [row.index, row.row.gid]),
  seen(element) {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    if (element.closest(".unseen")) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  },
  /** The middle of an element, if a click there reaches it. */
  middle(element) {
    if (!element) return null;
    element.scrollIntoView({ block: "nearest" });
    const box = element.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const top = document.elementFromPoint(x, y);
    return top && (element.contains(top) || top.contains(element)) ? [x, y] : null;
  },
  called(element) {
    if (!element) return "nothing";
    const name = element.id ? `#${element.id}` : element.dataset?.do ? `[data-do=${element.dataset.do}]`
      : [...element.classList].map((word) => `.${word}`).join("");
    return `<${element.tagName.toLowerCase()}${name}>`;
  },

  // Colours.

  parse(text) {
    const parts = /^(rgba?|color)\((?:srgb )?([^)]+)\)$/.exec(text);
    if (!parts) throw new Error(`no colour that is understood: ${text}`);
    const [red, green, blue, alpha = 1] = parts[2].split(/[ ,\/]+/).map(Number);
    const scale = parts[1] === "color" ? 255 : 1;
    return [red * scale, green * scale, blue * scale, alpha];
  },
  over: (a, b) => [0, 1, 2].map((part) => a[part] * a[3] + b[part] * (1 - a[3])),
  luminance: (color) => color.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0),
  ratio(a, b) {
    const [high, low] = [tester.luminance(a), tester.luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  },
  /** A colour on an element and the colour behind it, as they are on the screen, with translucent parts before them. */
  onScreen(element, color) {
    const chain = [];
    for (let part = element; part; part = part.parentElement) chain.unshift(part);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const mix = (a, b, share) => tester.over([...a, share], b);
    const at = (index, behind) => {
      const style = getComputedStyle(chain[index]);
      const back = tester.over(tester.parse(style.backgroundColor), behind);
      let [front, last] = index === chain.length - 1 ? [tester.over(color, back), back] : at(index + 1, back);
      if (style.filter === "grayscale(1)") {
        const gray = (value) => Array(3).fill(value[0] * 0.2126 + value[1] * 0.7152 + value[2] * 0.0722);
        [front, last] = [gray(front), gray(last)];
      } else if (style.filter !== "none") throw new Error(`no filter that is understood: ${style.filter}`);
      const opacity = Number(style.opacity);
      return [mix(front, behind, opacity), mix(last, behind, opacity)];
    };
    return at(0, dark ? [18, 18, 18] : [255, 255, 255]);
  },
  contrast() {
    const found = new Map();
    let lowest = 99;
    const test = (element, color, least, what) => {
      const [front, back] = tester.onScreen(element, tester.parse(color));
      const ratio = tester.ratio(front, back);
      if (what === "text") lowest = Math.min(lowest, ratio);
      if (ratio < least) {
        const name = `${what} of ${tester.called(element)} in ${tester.called(element.parentElement)}`;
        found.set(name, `${name}: ${ratio.toFixed(2)} of ${least}: ${element.textContent.trim().slice(0, 40)}`);
      }
    };
    const modal = document.querySelector("dialog:modal");
    for (const element of (modal ?? document.body).querySelectorAll("*")) {
      if (!tester.seen(element) || element.closest(":disabled, [aria-disabled=true]")) continue;
      const style = getComputedStyle(element);
      const size = parseFloat(style.fontSize);
      const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
      const isField = element.matches("input:not([type=checkbox]):not([type=file]), select, textarea");
      const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      if (isField && element.value === "" && element.placeholder) {
        test(element, getComputedStyle(element, "::placeholder").color, least, "text");
      } else if ((isField || hasText) && !element.matches("option")) {
        test(element, style.color, least, "text");
      }
      for (const pseudo of ["::before", "::after"]) {
        const extra = getComputedStyle(element, pseudo);
        const isText = /[^"\s]/.test(extra.content) && !/^(none|normal)$/.test(extra.content);
        if (isText) test(element, extra.color, least, "text");
      }
      if (isField && parseFloat(style.borderTopWidth) > 0) test(element.parentElement, style.borderTopColor, 3, "edge");
      if (element.matches("svg.icon") && element.closest("button")) test(element, style.stroke, 3, "icon");
    }
    return { lowest, found: [...found.values()] };
  },

  // Structure.

  structure(width) {
    const found = [];
    const all = [...document.querySelectorAll("*")];
    if (document.querySelectorAll("h1").length !== 1) found.push("there is not one h1");
    if (!document.documentElement.lang) found.push("the page has no lang");
    if (!document.title) found.push("the page has no title");
    const ids = new Set();
    for (const { id } of all) {
      if (!id) continue;
      if (ids.has(id)) found.push(`the id ${id} is there twice`);
      ids.add(id);
    }
    for (const element of all) {
      for (const name of ["for", "aria-controls", "aria-labelledby", "aria-describedby"]) {
        for (const id of (element.getAttribute(name) ?? "").split(/\s+/).filter(Boolean)) {
          if (!ids.has(id)) found.push(`${name} of ${tester.called(element)} names ${id}, which is not there`);
        }
      }
      if (element.matches("input, select, textarea") && !element.labels.length && !element.ariaLabel) {
        found.push(`${tester.called(element)} has no label`);
      }
      if (element.matches("img:not([alt])")) found.push("an img without alt");
      if (element.matches("svg, canvas") && !element.closest("[aria-hidden=true]")
        && !(element.getAttribute("aria-label") && element.getAttribute("role") === "img")) {
        found.push(`${tester.called(element)} has no alternative and is not hidden`);
      }
      const overflow = getComputedStyle(element).overflowX;
      // The lines of a text field are long, and scroll on purpose.
      if (["auto", "scroll"].includes(overflow) && element.scrollWidth > element.clientWidth
        && !element.matches("textarea") && tester.seen(element)) {
        found.push(`${tester.called(element)} scrolls horizontally: ${element.scrollWidth} > ${element.clientWidth}`);
      }
    }
    const full = document.documentElement.scrollWidth;
    if (full > width || innerWidth !== width) found.push(`the page scrolls horizontally: ${full} > ${width}`);
    return found;
  },

  // The Tab key.

  look(element) {
    const style = getComputedStyle(element.matches(".unseen") ? element.closest("label") : element);
    const names = ["outlineStyle", "outlineWidth", "outlineColor", "borderColor", "borderWidth", "backgroundColor"];
    return names.map((name) => style[name]).join(" ");
  },
  beginWalk() {
    tester.walk = { seen: [], found: [], last: null, look: "" };
  },
  /** Takes what has the focus now. Returns whether that is where the walk began. */
  walked() {
    const { walk } = tester;
    const element = document.activeElement;
    const { last } = walk;
    // A dialog may have a single stop.
    if (last && last === element && walk.seen.length === 1) return true;
    if (last && last === element) walk.found.push(`Tab stays at ${tester.called(element)}`);
    else if (last?.isConnected && tester.look(last) === walk.look) {
      walk.found.push(`the focus of ${tester.called(last)} is not seen`);
    }
    walk.last = null;
    if (element === document.body || element === document.documentElement) return false;
    if (element === walk.seen[0]) return true;
    walk.seen.push(element);
    walk.last = element;
    walk.look = tester.look(element);
    const shown = element.matches(".unseen") ? element.closest("label") : element;
    const style = getComputedStyle(shown);
    if (style.outlineStyle !== "none") {
      const [front, back] = tester.onScreen(shown.parentElement, tester.parse(style.outlineColor));
      if (tester.ratio(front, back) < 3) walk.found.push(`the outline of ${tester.called(element)} is faint`);
    }
    const box = shown.getBoundingClientRect();
    if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth) {
      walk.found.push(`${tester.called(element)} has the focus outside of what is seen`);
    }
    return false;
  },
  endWalk() {
    const { walk } = tester;
    const { last } = walk;
    last?.blur();
    if (last && tester.look(last) === walk.look) walk.found.push(`the focus of ${tester.called(last)} is not seen`);
    const modal = document.querySelector("dialog:modal");
    const stops = [...(modal ?? document.body).querySelectorAll("a[href], button, input, select, textarea, [tabindex]")]
      .filter((element) => element.tabIndex >= 0 && !element.matches(":disabled") && element.checkVisibility());
    const missed = stops.filter((element) => !walk.seen.includes(element));
    return { number: walk.seen.length, found: [...new Set(walk.found)], missed: missed.map(tester.called) };
  },

  /** Called once when the page is about to take rows of the queue. */
  onRows: null,

  /** Scrolls a list by a step in each frame. */
  async scroll(list, step, frames) {
    const scroller = document.getElementById(list);
    const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });
    await frame();
    const times = [];
    let most = 0;
    let last = performance.now();
    for (let index = 0; index < frames; index += 1) {
      scroller.scrollTop += step;
      await frame();
      const now = performance.now();
      times.push(now - last);
      last = now;
      most = Math.max(most, tester.rows(list).length);
    }
    times.sort((a, b) => a - b);
    return { median: times[frames >> 1], late: times[Math.floor(frames * 0.95)], worst: times.at(-1), most };
  },
};

const parse = JSON.parse;
JSON.parse = (text, ...rest) => {
  const { onRows } = tester;
  if (onRows && text.includes('"paused"')) {
    tester.onRows = null;
    onRows();
  }
  return parse(text, ...rest);
};
"""

KEYS = {
  "ArrowUp": 38, "ArrowDown": 40, "Tab": 9, "Enter": 13, "Escape": 27, "Delete": 46, "Home": 36, "End": 35, " ": 32,
}


class Browser:
  """A page in a headless Chromium."""

  def __init__(self, folder):
    self.folder, self.number, self.session = folder, 0, None
    self.errors, self.is_down, self.buffer, self.size = [], False, b"", None

  def start(self):
    theirs_in, self.output = os.pipe()
    self.input, theirs_out = os.pipe()
    # Chromium reads at 3 and writes at 4.
    script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    with open(f"{self.folder}/chromium.log", "wb") as log:
      launch([
        "bash", "-c", script, "bash", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
        "--disable-dev-shm-usage", f"--user-data-dir={self.folder}/profile", "--remote-debugging-pipe", "about:blank"],
        stdout=log, stderr=log, pass_fds=(theirs_in, theirs_out))
    os.close(theirs_in)
    os.close(theirs_out)
    target = self.command("Target.createTarget", url="about:blank")["targetId"]
    self.session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ["Page", "Runtime", "Log", "DOM", "Accessibility", "Audits"]:
      self.command(f"{domain}.enable")
    self.command("Page.addScriptToEvaluateOnNewDocument", source=TESTER)
    self.command("Emulation.setFocusEmulationEnabled", enabled=True)
    self.resize(1280, 800)

  def command(self, method, **parameters):
    self.number += 1
    message = {"id": self.number, "method": method, "params": parameters}
    if self.session:
      message["sessionId"] = self.session
    try:
      os.write(self.output, json.dumps(message).encode() + b"\0")
    except BrokenPipeError:
      raise Failure("Chromium has ended", self.tail()) from None
    while True:
      reply = self.read()
      if reply.get("id") == self.number:
        check("error" not in reply, method, reply.get("error"))
        return reply["result"]

  def read(self):
    """The next message. Errors that the page tells are kept."""
    while b"\0" not in self.buffer:
      check(select.select([self.input], [], [], LIMIT)[0], f"Chromium said nothing in {LIMIT} s")
      part = os.read(self.input, 1 << 20)
      check(part, "Chromium has ended", self.tail())
      self.buffer += part
    text, self.buffer = self.buffer.split(b"\0", 1)
    message = json.loads(text)
    self.note(message.get("method"), message.get("params", {}))
    return message

  def note(self, method, parameters):
    if method == "Runtime.exceptionThrown":
      details = parameters["exceptionDetails"]
      self.errors.append(details.get("exception", {}).get("description") or details["text"])
    elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
      self.errors.append(f"console: {[entry.get('description', entry.get('value')) for entry in parameters['args']]}")
    elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
      entry = parameters["entry"]
      if not (self.is_down and re.match(r"WebSocket connection to .* failed", entry["text"])):
        self.errors.append(f"{entry['source']}: {entry['text']}")
    elif method == "Audits.issueAdded" and parameters["issue"]["code"].startswith("ContentSecurityPolicy"):
      self.errors.append(f"policy: {json.dumps(parameters['issue']['details'])}")
    elif method == "Inspector.targetCrashed":
      raise Failure("the page crashed")

  def tail(self):
    with open(f"{self.folder}/chromium.log", errors="replace") as log:
      return "chromium: " + "  ".join(log.readlines()[-10:])

  def calm(self):
    """Fails if the page told an error."""
    self.js("0")
    check(not self.errors, "the page told errors", *self.errors)

  # Looking.

  def js(self, expression):
    reply = self.command(
      "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=False)
    details = reply.get("exceptionDetails", {})
    check(not details, f"in the page: {expression}", details.get("exception", {}).get("description"))
    return reply["result"].get("value")

  def text(self, selector):
    return self.js(f"tester.text({json.dumps(selector)})")

  def until(self, what, expression):
    """Waits until something holds in the page. What an expression is about need not be there yet."""
    known = None

    def value():
      nonlocal known
      try:
        known = self.js(f"window.tester && tester.plain({expression})")
        return known
      except Failure as failure:
        known = failure
        return None
    return until(what, value, lambda: f"{expression} is {known}", lambda: f"announced: {self.text('#announcer')}",
      lambda: f"messages: {self.text('#notices')}", lambda: f"errors: {self.errors}")

  def until_text(self, selector, part):
    self.until(f"{selector} has “{part}”", f"tester.text({json.dumps(selector)}).includes({json.dumps(part)})")

  def until_focus(self, expression):
    self.until(f"{expression} has the focus", f"document.activeElement === {expression}")

  def screenshot(self, path):
    data = self.command("Page.captureScreenshot", format="png")["data"]
    with open(path, "wb") as file:
      file.write(base64.b64decode(data))

  # Doing.

  def open(self, url):
    self.command("Page.navigate", url=url)

  def resize(self, width, height, is_dark=False):
    self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
      mobile=width < 500)
    self.command("Emulation.setEmulatedMedia", features=[
      {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
    self.size = width, height
    theme = "dark" if is_dark else "light"
    until("the page has its size", lambda: self.js(
      f"innerHeight === {height} && matchMedia('(prefers-color-scheme: {theme})').matches"))

  def focus(self, element):
    """Puts the focus on an element as soon as it is there."""
    if element[0] in "#.[":
      element = f"tester.$({json.dumps(element)})"
    self.until(f"{element} has the focus", f"{element}.focus() ?? document.activeElement === {element}")

  def key(self, key, modifiers=0):
    code = "Space" if key == " " else f"Key{key.upper()}" if len(key) == 1 else key
    number = KEYS.get(key) or ord(key.upper())
    event = {"key": key, "code": code, "modifiers": modifiers, "windowsVirtualKeyCode": number}
    text = "\r" if key == "Enter" else key if len(key) == 1 else None
    down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
    self.command("Input.dispatchKeyEvent", **down, **event)
    self.command("Input.dispatchKeyEvent", type="keyUp", **event)

  def type(self, text):
    self.command("Input.insertText", text=text)

  def fill(self, selector, text):
    """Replaces the text of a field, and leaves the field."""
    self.js(f"tester.$({json.dumps(selector)}).focus(); tester.$({json.dumps(selector)}).select()")
    if text:
      self.type(text)
    else:
      self.key("Delete")
    self.key("Tab")

  def pointer(self, kind, x, y):
    self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

  def click(self, element):
    """Clicks at a selector or a JavaScript expression, where an element can be reached."""
    if element[0] in "#.[":
      element = f"tester.$({json.dumps(element)})"
    x, y = self.until(f"{element} can be clicked", f"tester.middle({element})")
    self.pointer("mouseMoved", x, y)
    self.pointer("mousePressed", x, y)
    self.pointer("mouseReleased", x, y)

  def drag(self, begin, end, release=True):
    self.pointer("mouseMoved", *begin)
    self.pointer("mousePressed", *begin)
    for step in range(1, 9):
      self.pointer("mouseMoved", *(a + (b - a) * step / 8 for a, b in zip(begin, end)))
    # The target follows in the next frame.
    self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    if release:
      self.pointer("mouseReleased", *end)

  def swipe(self, begin, end):
    self.command("Emulation.setTouchEmulationEnabled", enabled=True)
    touch = lambda kind, *points: self.command(
      "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])
    touch("touchStart", begin)
    for step in range(1, 9):
      touch("touchMove", tuple(a + (b - a) * step / 8 for a, b in zip(begin, end)))
    self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    touch("touchEnd")
    self.command("Emulation.setTouchEmulationEnabled", enabled=False)


# Roles that mean nothing without a name.
NAMED = {
  "button", "checkbox", "combobox", "complementary", "dialog", "heading", "image", "img", "link", "option",
  "progressbar", "radio", "region", "searchbox", "slider", "spinbutton", "switch", "tab",
  "tablist", "tabpanel", "textbox",
}


class Test:
  def __init__(self, program, screenshots):
    self.folder = tempfile.mkdtemp(prefix="downpipe-page-")
    self.screenshots = screenshots
    os.mkdir(f"{self.folder}/downloads")
    self.daemon = Daemon(program, f"{self.folder}/downloads")
    self.browser = Browser(self.folder)
    self.files = Files()
    self.lowest = 99

  def run(self):
    begin = time.monotonic()
    self.daemon.start()
    self.browser.start()
    for step in [
      self.loads, self.wrong_token, self.token_of_the_address, self.adding, self.pause_and_resume, self.priority,
      self.reorder_by_keyboard, self.reorder_by_pointer, self.removing, self.failing_url, self.history, self.limits,
      self.states, self.sizes_and_themes, self.killed_server, self.many_rows, self.forgetting,
    ]:
      start = time.monotonic()
      step()
      self.browser.calm()
      print(f"ok {step.__name__.replace('_', ' ')} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"ok all of it in {time.monotonic() - begin:.0f} s")

  def end(self):
    for number in SIGNALS:
      signal.signal(number, signal.SIG_IGN)
    for process in started[:]:
      end(process)
    shutil.rmtree(self.folder, ignore_errors=True)

  # What is true of many steps.

  def published(self, gid, path):
    """Waits until a download is complete, and compares its file."""
    row = until(f"{path} is complete", lambda: (row := self.daemon.status(gid))["status"] == "complete" and row,
      lambda: self.daemon.status(gid))
    with open(row["files"][0]["path"], "rb") as file:
      check(file.read() == self.files.content(path), f"the file of {path} has other bytes")

  def close_messages(self):
    page = self.browser
    # They leave by themselves, too.
    page.js("tester.$('#notices').querySelectorAll('button').forEach((button) => button.click())")
    page.until("the messages are closed", "!tester.$('#notices').children.length")

  def shows_queue(self):
    """Waits until the page shows the queue of the server, from the top."""
    def same():
      queue = self.daemon.active() + self.daemon.waiting()
      shown = self.browser.js("tester.told('queue')")
      is_full = len(shown) >= min(len(queue), 10)
      return is_full and shown == [[index, gid] for index, gid in enumerate(queue[:len(shown)])]
    until("the page shows the queue of the server", same, lambda: self.daemon.waiting(20),
      lambda: self.browser.js("tester.told('queue')"))

  def shows_history(self):
    """Waits until the page shows all that has ended, the newest first."""
    told = lambda: [row["gid"] for row in self.daemon.call("aria2.tellStopped", -1, 1000, ["gid"])]
    shown = lambda: [gid for _, gid in self.browser.js("tester.told('history')")]
    until("the page shows the history of the server", lambda: shown() == told(), shown, told)

  def until_waiting(self, order):
    until("the queue is in the order that was asked for", lambda: self.daemon.waiting()[:len(order)] == order,
      lambda: f"expected {order}", lambda: f"is {self.daemon.waiting()}")
    self.shows_queue()

  def add(self, *urls):
    """Adds URLs by the dialog."""
    page = self.browser
    page.click("#open-add")
    page.until_focus("tester.$('#urls')")
    page.type("\n".join(urls))
    page.until_text("#add-submit", f"Add {len(urls)}" if len(urls) > 1 else "Add")
    page.click("#add-submit")

  def added(self, *urls):
    self.add(*urls)
    self.browser.until("the dialog is closed", "!tester.$('#add').open")
    return [until(f"{url} is in the queue", lambda: self.daemon.gid(url)) for url in urls]

  def show_tab(self, name):
    self.browser.js(f"tester.$('#tab-{name}').click()")
    self.browser.until(f"{name} is shown", f"!tester.$('#panel-{name}').hidden")

  def examine(self, what, is_walked=True):
    """Checks what is shown now as tools for accessibility do."""
    page = self.browser
    found = page.js(f"tester.structure({page.size[0]})")
    colors = page.js("tester.contrast()")
    self.lowest = min(self.lowest, colors["lowest"])
    found += colors["found"]
    for node in page.command("Accessibility.getFullAXTree")["nodes"]:
      role = node.get("role", {}).get("value")
      if not node.get("ignored") and role in NAMED and not node.get("name", {}).get("value", "").strip():
        found.append(f"a {role} has no name: {self.described(node.get('backendDOMNodeId'))}")
    if is_walked:
      found += self.walk()
    check(not found, f"{what} at {page.size[0]}×{page.size[1]}:", *found)

  def described(self, node):
    try:
      return self.browser.command("DOM.describeNode", backendNodeId=node)["node"].get("attributes")
    except Failure:
      return "which is gone"

  def walk(self):
    """Goes around by the Tab key."""
    page = self.browser
    page.js("document.activeElement.blur(); tester.beginWalk()")
    for _ in range(300):
      page.key("Tab")
      if page.js("tester.walked()"):
        break
    else:
      return ["Tab does not come back to where it began"]
    walk = page.js("tester.endWalk()")
    return walk["found"] + [f"Tab does not reach {name}" for name in walk["missed"]]

  # The steps, in their order.

  def loads(self):
    page = self.browser
    headers, _ = self.daemon.get("/")
    policy = headers["Content-Security-Policy"] or ""
    for rule in ["default-src 'none'", "script-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"]:
      check(rule in policy, f"the policy of the page lacks {rule}", policy)
    check("unsafe" not in policy, "the policy is weak", policy)
    page.open(self.daemon.root)
    page.until("the page asks for a token", "!tester.$('#sign-in')?.hidden && tester.$('#views').hidden")
    page.until_focus("tester.$('#token')")
    error = page.text("#token-error")
    check(error == "", "the page tells an error before a token was written", error)

  def wrong_token(self):
    page = self.browser
    page.type("wrong")
    page.key("Enter")
    page.until_text("#token-error", "did not take this token")
    page.until_focus("tester.$('#token')")
    check(page.js("tester.$('#token').getAttribute('aria-invalid')") == "true", "the field is not marked as wrong")
    check(page.js("localStorage.length + sessionStorage.length") == 0, "a wrong token was kept")
    # One that was kept and is wrong now is forgotten.
    page.open("about:blank")
    page.open(f"{self.daemon.root}#token=wrong")
    page.until_text("#token-error", "did not take this token")
    check(page.js("localStorage.length + sessionStorage.length") == 0, "a wrong token of the address was kept")
    for is_dark in (False, True):
      for size in SIZES:
        page.resize(*size, is_dark)
        self.examine("signing in")
    page.resize(1280, 800)

  def token_of_the_address(self):
    page = self.browser
    page.open("about:blank")
    page.open(f"{self.daemon.root}#token={self.daemon.secret}")
    page.until("the page is connected", "tester.$('#connection')?.dataset.state === 'open'")
    page.until("the views are shown", "!tester.$('#views').hidden && tester.$('#sign-in').hidden")
    check(page.js("location.href") == self.daemon.root, "the address is another one", page.js("location.href"))
    entries = page.command("Page.getNavigationHistory")["entries"]
    check(not any(self.daemon.secret in entry["url"] for entry in entries), "the token is in the browser's history")
    check(page.js("localStorage.length") == 0, "the token was kept for longer than the tab")
    page.command("Page.reload")
    page.until("the page is connected after it was loaded again",
      "tester.$('#connection')?.dataset.state === 'open' && !tester.$('#views').hidden")
    page.until("the empty queue says what to do", "!tester.$('#queue-empty').hidden")

  def adding(self):
    page = self.browser
    quick, held = self.files.url("/quick/first.bin"), self.files.url("/held/second.bin")
    first, self.held = self.added(quick, held)
    page.until("the second one runs",
      f"tester.row('queue', '{self.held}')?.querySelector('.state').textContent === 'Downloading'")
    self.published(first, "/quick/first.bin")
    page.until("the first one is told as ended",
      f"tester.text('#total-ended') === '1' && !tester.row('queue', '{first}')")
    page.until("progress is told", f"tester.row('queue', '{self.held}').querySelector('.bar').ariaValueNow > 0")
    page.until("the speed is told", "/ [KM]iB\\/s$/.test(tester.text('#total-speed'))")
    # What cannot be added stays in the dialog, with the reason.
    self.add("not a URL")
    page.until_text("#add-error", "was not added")
    page.until("the reason is told",
      "tester.text('#urls-errors').length > 10 && tester.$('#urls').value === 'not a URL'")
    for is_dark in (False, True):
      for size in SIZES:
        page.resize(*size, is_dark)
        self.examine("the dialog that adds")
        self.picture("add", is_dark)
    page.resize(1280, 800)
    page.js("tester.$('#urls').focus(); tester.$('#urls').select()")
    page.key("Delete")
    page.key("Escape")
    page.until("Escape closes the dialog", "!tester.$('#add').open")
    page.until_focus("tester.$('#open-add')")

  def pause_and_resume(self):
    page = self.browser
    toggle = f"tester.part('queue', '{self.held}', 'toggle')"
    state = f"tester.row('queue', '{self.held}')?.querySelector('.state').textContent"
    page.click(toggle)
    page.until("it is paused", f"{state} === 'Paused'")
    page.until_text("#announcer", "Paused second.bin")
    check(self.daemon.status(self.held)["status"] == "paused", "the server did not pause it")
    page.until("the button resumes", f"{toggle}.ariaLabel.startsWith('Resume')")
    page.click(toggle)
    page.until("it runs again", f"{state} === 'Downloading'")
    check(self.daemon.status(self.held)["status"] == "active", "the server did not resume it")
    # By keyboard.
    page.focus(f"tester.row('queue', '{self.held}')")
    page.key(" ")
    page.until("it is paused by the space bar", f"{state} === 'Paused'")
    page.until_focus(f"tester.row('queue', '{self.held}')")
    page.key(" ")
    page.until("it runs again", f"{state} === 'Downloading'")

  def priority(self):
    page = self.browser
    urls = [self.files.url(f"/quick/paused-{index}-with-a-long-name-that-does-not-fit.tar.zst") for index in range(8)]
    self.daemon.batch([("aria2.addUri", [url], {"pause": "true"}) for url in urls])
    self.shows_queue()
    gid = self.daemon.waiting()[5]
    page.focus(f"tester.part('queue', '{gid}', 'priority')")
    page.key("h")
    until("the priority is high", lambda: self.daemon.status(gid)["downpipe"]["priority"] == 100,
      lambda: self.daemon.status(gid))
    page.until_text("#announcer", ": High")
    self.until_waiting([gid])
    self.daemon.call("downpipe.changePriority", gid, 7)
    page.until("the page shows another priority",
      f"tester.part('queue', '{gid}', 'priority')?.selectedOptions[0].textContent === '7'")
    self.daemon.call("downpipe.changePriority", gid, 0)
    page.until("the page shows the usual priority", f"tester.part('queue', '{gid}', 'priority')?.value === '0'")
    self.shows_queue()

  def reorder_by_keyboard(self):
    page = self.browser
    order = self.daemon.waiting()
    gid = order[2]
    page.focus(f"tester.row('queue', '{gid}')")
    page.key("ArrowDown", ALT)
    page.key("ArrowDown", ALT)
    self.until_waiting([*order[:2], *order[3:5], gid, *order[5:]])
    page.until_focus(f"tester.row('queue', '{gid}')")
    page.until_text("#announcer", f"is now at place 5 of {len(order)}")
    for _ in range(2):
      page.key("ArrowUp", ALT)
    self.until_waiting(order)
    page.until_focus(f"tester.row('queue', '{gid}')")
    # By buttons.
    page.click(f"tester.part('queue', '{gid}', 'up')")
    self.until_waiting([order[0], gid, order[1], *order[3:]])
    page.click(f"tester.part('queue', '{gid}', 'down')")
    self.until_waiting(order)
    # Without moving.
    page.focus(f"tester.row('queue', '{order[0]}')")
    page.key("ArrowDown")
    page.until_focus(f"tester.row('queue', '{order[1]}')")
    page.key("End")
    page.until_focus(f"tester.row('queue', '{order[-1]}')")
    page.key("Home")
    page.until_focus(f"tester.row('queue', '{self.held}')")

  def places(self, gid, target):
    """From the handle of a row to the upper part of another one."""
    return self.browser.js(f"""(() => {{
      const handle = tester.row("queue", "{gid}").querySelector(".handle").getBoundingClientRect();
      const row = tester.row("queue", "{target}").getBoundingClientRect();
      const x = handle.x + handle.width / 2;
      return [[x, handle.y + handle.height / 2], [x + 3, row.y + 4]];
    }})()""")

  def reorder_by_pointer(self):
    page = self.browser
    order = self.daemon.waiting()
    page.drag(*self.places(order[5], order[1]))
    moved = [order[0], order[5], *order[1:5], *order[6:]]
    self.until_waiting(moved)
    page.drag(*self.places(moved[1], moved[4]))
    moved = [moved[0], *moved[2:4], moved[1], *moved[4:]]
    self.until_waiting(moved)
    # Escape lets it be.
    page.drag(*self.places(moved[4], moved[0]), release=False)
    page.until("a row is dragged", "tester.$('#queue .ghost') && tester.$('#queue .dragged')")
    page.key("Escape")
    page.until("no row is dragged", "!tester.$('#queue .ghost') && !tester.$('#queue .dragged')")
    page.pointer("mouseReleased", 10, 10)
    # By a finger.
    page.swipe(*self.places(moved[6], moved[2]))
    self.until_waiting([*moved[:2], moved[6], *moved[2:6], *moved[7:]])

  def removing(self):
    page = self.browser
    order = self.daemon.waiting()
    gid = order[3]
    row = f"tester.row('queue', '{gid}')"
    page.focus(f"{row}")
    page.key("Delete")
    page.until_focus(f"{row}.querySelector('.ask [data-do=no]')")
    check("cannot be undone" in page.js(f"{row}.querySelector('.ask').textContent"), "the question does not say it all")
    page.key("Enter")
    page.until("the question is closed", f"!{row}.querySelector('.ask')")
    page.until_focus(row)
    check(self.daemon.waiting() == order, "it was removed without a yes")
    page.key("Delete")
    page.until_focus(f"{row}.querySelector('.ask [data-do=no]')")
    page.key("Tab", SHIFT)
    page.key("Enter")
    until("it is removed", lambda: self.daemon.status(gid)["status"] == "removed", lambda: self.daemon.status(gid))
    self.until_waiting([entry for entry in order if entry != gid])
    # By pointer, of one that has received something.
    other, = self.added(self.files.url("/held/removed.bin"))
    page.until("something was received", f"tester.row('queue', '{other}')?.row.received > 0")
    page.click(f"tester.part('queue', '{other}', 'remove')")
    page.until("the question tells what is lost",
      f"tester.row('queue', '{other}').querySelector('.ask')?.textContent.includes('What was received is deleted')")
    page.click(f"tester.row('queue', '{other}').querySelector('.ask [data-do=yes]')")
    until("it is removed", lambda: self.daemon.status(other)["status"] == "removed")
    page.until("it is not in the queue", f"!tester.row('queue', '{other}')")
    self.shows_queue()

  def failing_url(self):
    page = self.browser
    self.later, = self.added(self.files.url("/later/report.pdf"))
    until("it has failed", lambda: self.daemon.status(self.later)["status"] == "error",
      lambda: self.daemon.status(self.later))
    page.click("#tab-history")
    page.until("the history says what to do",
      f"/404.*check the URL/i.test(tester.row('history', '{self.later}')?.querySelector('.state').textContent)")
    page.focus(f"tester.row('history', '{self.later}')")
    page.key("Enter")
    page.until("all of it is shown",
      "tester.$('#details').open && tester.text('#details-list').includes('check the URL')")
    page.key("Escape")
    page.until("that is closed", "!tester.$('#details').open")
    page.until_focus(f"tester.row('history', '{self.later}')")

  def history(self):
    page = self.browser
    gids = lambda: [gid for _, gid in page.js("tester.told('history')")]
    ended = lambda: [row["gid"] for row in self.daemon.call("aria2.tellStopped", -1, 1000, ["gid"])]
    told = ended()
    self.shows_history()
    page.click("#search")
    page.type("REPORT check")
    until("one is found", lambda: gids() == [self.later], gids)
    page.js("tester.$('#search').select()")
    page.type("nothing is called so")
    page.until("nothing is found",
      "!tester.$('#history-empty').hidden && tester.text('#history-empty').startsWith('No ended')")
    page.js("tester.$('#search').select()")
    page.key("Delete")
    until("all are there again", lambda: gids() == told, gids)
    page.focus("#filter")
    page.key("f")
    until("those that failed are shown", lambda: gids() == [self.later], gids)
    page.key("Home")
    until("all are shown", lambda: gids() == told, gids)
    page.click("#clear")
    page.until_focus("tester.$('#clear-no')")
    page.key("Escape")
    page.until_focus("tester.$('#clear')")
    check(ended() == told, "the history was cleared without a yes")
    # Now the site has the file.
    self.files.is_found = True
    page.click(f"tester.part('history', '{self.later}', 'retry')")
    page.until_text("#announcer", "report.pdf is in the queue again")
    gid = until("it is tried again", lambda: self.daemon.gid(self.files.url("/later/report.pdf")))
    self.published(gid, "/later/report.pdf")
    page.until("the page shows it",
      f"tester.row('history', '{gid}')?.querySelector('.state').textContent === 'Complete'")
    # A row keeps the focus, and its keys, when another one comes above it.
    page.focus(f"tester.row('history', '{gid}')")
    index = page.js("document.activeElement.index")
    self.daemon.call("aria2.remove", self.daemon.waiting()[-1])
    page.until("the row is one place further down", f"tester.row('history', '{gid}').index === {index + 1}")
    page.until_focus(f"tester.row('history', '{gid}')")
    page.key("Tab")
    page.until_focus(f"tester.part('history', '{gid}', 'details')")
    page.key("ArrowUp")
    page.until_focus(f"tester.rows('history')[{index}]")
    # One leaves the list.
    gone = next(row["gid"] for row in self.daemon.call("aria2.tellStopped", -1, 1000) if row["status"] == "removed")
    page.click(f"tester.part('history', '{gone}', 'forget')")
    page.click(f"tester.row('history', '{gone}').querySelector('.ask [data-do=yes]')")
    page.until("the page does not show it", f"!tester.row('history', '{gone}')")
    check(gone not in ended(), "it is still there")
    page.click("#tab-queue")

  def limits(self):
    page = self.browser
    option = lambda name: self.daemon.call("aria2.getGlobalOption")[name]

    def agrees(name, value, said):
      until(f"{name} is {value}", lambda: option(name) == value, lambda: option(name))
      page.until_text("#limits-said", said)
    page.fill("#concurrent", "3")
    agrees("max-concurrent-downloads", "3", "Now: 3 at once, no speed limit.")
    page.focus("#limit-unit")
    page.key("ArrowDown")
    page.fill("#limit", "1.5")
    agrees("max-overall-download-limit", "1572864", "Now: 3 at once, 1.50 MiB/s.")
    fields = page.js("[tester.$('#limit').value, tester.$('#limit-unit').value]")
    check(fields == ["1.5", "1048576"], "the fields changed", fields)
    page.focus("#limit-unit")
    page.key("ArrowDown")
    agrees("max-overall-download-limit", "1610612736", "1.50 GiB/s")
    page.fill("#concurrent", "0")
    page.until_text("#limits-said", "a whole number from 1 to 10,000")
    check(page.js("tester.$('#concurrent').getAttribute('aria-invalid')") == "true", "the field is not marked as wrong")
    check(option("max-concurrent-downloads") == "3", "a wrong limit was taken")
    page.fill("#concurrent", "5")
    agrees("max-concurrent-downloads", "5", "Now: 5 at once")
    page.fill("#limit", "")
    agrees("max-overall-download-limit", "0", "no speed limit")

  def states(self):
    """What is there at times only: questions, details, messages, and a download that waits for a server."""
    page = self.browser
    trouble, = self.added(self.files.url("/busy/archive.zip"))
    waiting = f"tester.row('queue', '{trouble}')"
    page.until("a download in trouble says why",
      f"{waiting}?.dataset.state === 'trouble' && {waiting}.querySelector('.state').textContent.includes('503')")
    gid = [gid for gid in self.daemon.waiting() if gid != trouble][-1]
    row = f"tester.row('queue', '{gid}')"
    for is_dark in (False, True):
      for size in SIZES:
        page.resize(*size, is_dark)
        self.examine("the queue with a download in trouble", is_walked=False)
        page.js("tester.$('#queue').scrollTop = 1e6")
        page.until("the last row is there", f"{row}?.row")
        page.click(f"{row}.querySelector('[data-do=remove]')")
        self.examine("the question", is_walked=False)
        page.key("Escape")
        page.until("the question is closed", f"!{row}.querySelector('.ask')")
        page.click(f"{row}.querySelector('.name')")
        page.until("details are shown", "tester.$('#details').open")
        self.examine("the details")
        page.key("Escape")
        page.until("the details are closed", "!tester.$('#details').open")
        page.js("tester.$('#queue').scrollTop = 0")
    page.resize(1280, 800)
    # Another program removes it.
    self.daemon.call("aria2.remove", trouble)
    page.until("the page shows that it is gone", f"!{waiting}")

  def picture(self, name, is_dark):
    self.browser.js("document.activeElement.blur(); tester.$('#queue').scrollTop = 0")
    if self.screenshots:
      width, height = self.browser.size
      self.browser.screenshot(f"{self.screenshots}/{name}-{width}x{height}-{'dark' if is_dark else 'light'}.png")

  def sizes_and_themes(self):
    page = self.browser
    filled = {"queue": "tester.rows('queue').some((row) => row.row)", "history": "tester.rows('history').length > 1",
      "pipeline": "tester.$('#flow .stage')", "speed": "tester.$('#chart').width > 0"}
    self.close_messages()
    for is_dark in (False, True):
      for size in SIZES:
        page.resize(*size, is_dark)
        for name, content in filled.items():
          if page.js(f"tester.$('#tab-{name}').hidden"):
            continue
          self.show_tab(name)
          page.until(f"{name} is filled", content)
          if name == "history":
            self.shows_history()
          self.examine(name)
          self.picture(name, is_dark)
        self.show_tab("queue")
    page.resize(1280, 800)

  def everything(self):
    """What must be there again after the server was killed."""
    daemon = self.daemon
    keys = ["gid", "status", "files", "downpipe"]
    rows = lambda method, *parameters: [
      (row["gid"], row["status"], row["downpipe"].get("priority"), row["files"][0]["uris"])
      for row in daemon.call(method, *parameters, keys)]
    options = daemon.call("aria2.getGlobalOption")
    limits = [options[name] for name in ("max-concurrent-downloads", "max-overall-download-limit")]
    ended = sorted(map(str, rows("aria2.tellStopped", 0, 1000)))
    return rows("aria2.tellActive"), rows("aria2.tellWaiting", 0, 1000), ended, limits

  def killed_server(self):
    page = self.browser
    self.daemon.call("aria2.changeGlobalOption", {"max-concurrent-downloads": "4"})
    self.daemon.call("downpipe.changePriority", self.daemon.waiting()[4], 100)
    self.shows_queue()
    before = self.everything()
    shown = page.js("tester.told('queue')")
    for is_first in (True, False):
      page.is_down = True
      self.daemon.kill()
      page.until("the page says that the connection is lost",
        "!tester.$('#banner').hidden && tester.text('#banner').includes('connection to the server is lost')")
      check(page.js("tester.told('queue')") == shown, "the rows have changed when the connection was lost")
      page.js(f"tester.part('queue', '{self.held}', 'toggle').click()")
      page.until_text("#notices", "nothing was changed")
      if is_first:
        for is_dark in (False, True):
          for size in SIZES:
            page.resize(*size, is_dark)
            self.examine("the page without a server", is_walked=False)
            self.picture("lost", is_dark)
        page.resize(1280, 800)
        print(f"   the lowest contrast of text in all states was {self.lowest:.2f}")
      self.close_messages()
      self.daemon.start()
      # The first time it is tried again by itself.
      if not is_first:
        page.js("tester.$('#connect-now').click()")
      page.until("the page is connected again",
        "tester.$('#connection').dataset.state === 'open' && tester.$('#banner').hidden")
      page.calm()
      page.is_down = False
      until("everything is there again", lambda: self.everything() == before, lambda: f"before {before}",
        lambda: f"now {self.everything()}")
      self.shows_queue()
    self.files.released.set()
    self.published(self.held, "/held/second.bin")
    page.until("the page shows that it has ended", f"!tester.row('queue', '{self.held}')")

  def right_rows(self, index):
    """Waits until the rows around an index are shown, and are those of the server."""
    first = max(0, index - 30)
    expected = {first + place: row["gid"] for place, row in enumerate(
      self.daemon.call("aria2.tellWaiting", first, 60 + MOST_ROWS, ["gid"]))}

    def fits():
      rows = self.browser.js("tester.rows('queue').map((row) => [row.index, row.row?.gid])")
      check(len(rows) <= MOST_ROWS, f"{len(rows)} rows are in the page")
      return any(place == index for place, _ in rows) and all(expected.get(place) == gid for place, gid in rows)
    until(f"the rows around {index} are right", fits, lambda: self.browser.js("tester.text('#queue-place')"))

  def many_rows(self):
    page = self.browser
    begin = time.monotonic()
    known = len(self.daemon.waiting())
    for start in range(known, MANY, 500):
      self.daemon.batch([
        ("aria2.addUri", [self.files.url(f"/quick/many/archive-{index:05d}.tar.zst")], {"pause": "true"})
        for index in range(start, min(MANY, start + 500))])
    print(f"   {MANY - known:,} downloads were added in {time.monotonic() - begin:.1f} s")
    page.until("the page tells their number", f"tester.text('#total-waiting') === '{MANY:,}'")
    page.until("the list has their number", f"tester.text('#queue-place').endsWith('of {MANY:,}')")
    self.right_rows(0)
    for step in (52, 300, 1500):
      times = page.js(f"tester.scroll('queue', {step}, 180)")
      check(times["most"] <= MOST_ROWS, f"{times['most']} rows are in the page while it is scrolled")
      print(f"   {step} px a frame: median {times['median']:.1f} ms, 95 of 100 within {times['late']:.1f} ms, "
        f"worst {times['worst']:.1f} ms, at most {times['most']} rows in the page")
    scroll = lambda top: page.js(f"tester.$('#queue').scrollTop = {top}")
    scroll(1e9)
    self.right_rows(MANY - 1)
    scroll(0)
    self.right_rows(0)
    # Also when rows arrive before the browser has told of the scrolling.
    page.js("void (tester.onRows = () => { tester.$('#queue').scrollTop = 1e9; })")
    page.until("rows have arrived", "!tester.onRows")
    self.right_rows(MANY - 1)
    scroll("(tester.$('#queue').scrollHeight - tester.$('#queue').clientHeight) / 2")
    self.right_rows(MANY // 2)
    self.show_tab("history")
    page.until("the history is there", "tester.rows('history').length > 1")
    self.show_tab("queue")
    self.right_rows(MANY // 2)
    page.js("tester.$('#queue').scrollTop = 0")
    page.focus("tester.rows('queue').find((row) => row.tabIndex === 0)")
    page.key("End")
    self.right_rows(MANY - 1)
    page.until("the last row has the focus", f"document.activeElement.index === {MANY - 1}")
    # Rows that leave above do not move what is seen.
    scroll("150 * tester.$('#queue .row').offsetHeight")
    self.right_rows(155)
    page.focus("#tab-queue")
    gid, top = page.js("(([row]) => [row.row.gid, row.getBoundingClientRect().top])"
      "(tester.rows('queue').filter((row) => row.index === 155))")
    gone = self.daemon.waiting(10)
    self.daemon.batch([("aria2.remove", entry) for entry in gone])
    page.until("the row is ten places further up", f"tester.row('queue', '{gid}')?.index === 145")
    now = page.js(f"tester.row('queue', '{gid}').getBoundingClientRect().top")
    check(abs(now - top) < 2, f"what is seen moved from {top} to {now}")

  def forgetting(self):
    page = self.browser
    page.click("#forget")
    page.until_focus("tester.$('#token')")
    check(page.js("localStorage.length + sessionStorage.length") == 0, "the token is still kept")
    page.js("tester.$('#remember').click()")
    page.type(self.daemon.secret)
    page.key("Enter")
    page.until("the page is connected", "tester.$('#connection').dataset.state === 'open'")
    check(page.js("localStorage.length") == 1, "the token is not kept")


def main():
  parser = argparse.ArgumentParser(description="Drives the page of `downpipe serve` in a headless Chromium.")
  parser.add_argument("downpipe", help="the program")
  parser.add_argument("--screenshots", metavar="FOLDER", help="save a picture of each size, theme and tab there")
  options = parser.parse_args()
  if options.screenshots:
    os.makedirs(options.screenshots, exist_ok=True)
  if not shutil.which("chromium"):
    sys.exit("page_test: there is no chromium: install Debian's package of this name")
  for number in SIGNALS:
    signal.signal(number, lambda number, _: sys.exit(128 + number))
  test = Test(os.path.abspath(options.downpipe), options.screenshots)
  try:
    test.run()
  except Exception as error:
    print(f"not ok: {error}" if isinstance(error, Failure) else traceback.format_exc(), file=sys.stderr)
    at = [frame.name for frame in traceback.extract_tb(error.__traceback__) if hasattr(Test, frame.name)]
    print(f"in {' > '.join(at)}\n{test.daemon.tail()}", file=sys.stderr)
    if test.screenshots and test.browser.session:
      try:
        test.browser.screenshot(f"{test.screenshots}/failure.png")
      except Exception:
        pass
    sys.exit(1)
  finally:
    test.end()


if __name__ == "__main__":
  main()
