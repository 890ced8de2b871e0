// Long lists of which only the visible part exists: the queue and the history.

import {
  bytes, capital, count, duration, id, inWords, make, readStatus, setText, shortURL, speed, statusKeys,
} from "./link.js";

const mostHeight = 6_000_000; // Browsers place nothing reliably far below this; longer lists are scaled.
const pageSize = 100;
const mostPages = 50;
const mostHistory = 10_000;
const inPlace = { preventScroll: true };

/** Draws the visible rows of a list, each under its key, so that focus stays with a row when others move. */
class VirtualList {
  constructor(scroller, template, { rowAt, keyOf, fill, onRange, onKey }) {
    Object.assign(this, { scroller, template, rowAt, keyOf, fill, onRange, onKey });
    this.count = 0;
    this.top = 0;
    this.current = 0;
    this.shown = new Map();
    this.spare = [];
    this.pinned = null;
    this.lastScroll = 0;
    this.space = make("div", { className: "space", role: "presentation" });
    this.probe = make("div", { className: "row probe" });
    this.probe.setAttribute("aria-hidden", "true");
    this.space.append(this.probe);
    scroller.append(this.space);
    scroller.tabIndex = -1;
    scroller.addEventListener("scroll", () => this.scrolled());
    scroller.addEventListener("focusin", (event) => this.focused(event));
    scroller.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.measure()).observe(scroller);
    this.measure();
  }

  measure() {
    const before = this.rowHeight;
    this.rowHeight = this.probe.offsetHeight || before || 56;
    this.view = this.scroller.clientHeight;
    if (before && before !== this.rowHeight) this.top = this.top / before * this.rowHeight;
    this.resize();
  }

  resize() {
    this.full = this.count * this.rowHeight;
    this.height = Math.min(this.full, mostHeight);
    const height = `${this.height}px`;
    if (this.space.style.height !== height) this.space.style.height = height;
    this.go(this.top);
  }

  get most() { return Math.max(0, this.full - this.view); }
  get isScaled() { return this.full > this.height; }

  // The first and the last tenth of a scaled list scroll as they are, so that its ends are reached smoothly.
  toScroll(top) {
    if (!this.isScaled) return top;
    const range = this.height - this.view;
    const edge = range / 10;
    if (top <= edge) return top;
    if (top >= this.most - edge) return range - (this.most - top);
    return edge + (top - edge) * (range - 2 * edge) / (this.most - 2 * edge);
  }

  toTop(scroll) {
    if (!this.isScaled) return scroll;
    const range = this.height - this.view;
    const edge = range / 10;
    if (scroll <= edge) return scroll;
    if (scroll >= range - edge) return this.most - (range - scroll);
    return edge + (scroll - edge) * (this.most - 2 * edge) / (range - 2 * edge);
  }

  scrolled() {
    const scroll = this.scroller.scrollTop;
    const step = scroll - this.lastScroll;
    if (step === 0) return;
    this.lastScroll = scroll;
    const isAtEnd = scroll <= 0 || scroll >= this.height - this.view - 1;
    // In a scaled list a small step is that of a wheel or a finger, a large one that of the bar.
    if (this.isScaled && !isAtEnd && Math.abs(step) < 1.5 * this.view) {
      this.top = Math.min(this.most, Math.max(0, this.top + step));
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.go(this.top), 150);
    } else {
      this.top = Math.min(this.most, Math.max(0, this.toTop(scroll)));
    }
    this.draw();
  }

  go(top) {
    this.top = Math.min(this.most, Math.max(0, top));
    const scroll = this.toScroll(this.top);
    if (Math.abs(this.scroller.scrollTop - scroll) >= 1) this.scroller.scrollTop = scroll;
    this.lastScroll = this.scroller.scrollTop;
    this.draw();
  }

  /** The rows that are visible, from the first to behind the last. */
  get range() {
    const first = Math.floor(this.top / this.rowHeight);
    return [Math.min(first, this.count), Math.min(this.count, Math.ceil((this.top + this.view) / this.rowHeight))];
  }

  /** What is visible now, to find the place again after rows have changed. */
  mark() {
    // The event of a scroll comes with the next frame: until then the old place would be restored.
    if (this.scroller.clientHeight > 0) this.scrolled();
    if (this.top < 2) return null;
    const [first, last] = this.range;
    const places = [];
    for (let index = first; index < last; index += 1) {
      const row = this.rowAt(index);
      if (row) places.push([this.keyOf(row), index * this.rowHeight - this.top]);
    }
    return places;
  }

  /** Shows changed rows; `indexOf` finds a row by its key, or -1. */
  update(rows, mark, indexOf) {
    this.count = rows;
    this.current = Math.max(0, Math.min(this.current, rows - 1));
    for (const [key, offset] of mark ?? []) {
      const index = indexOf(key);
      if (index >= 0) {
        this.top = index * this.rowHeight - offset;
        break;
      }
    }
    this.resize();
    // The row that has the focus stays the current one, also when others come or go above it.
    if (this.scroller.contains(document.activeElement)) this.focused({ target: document.activeElement });
  }

  draw() {
    if (this.view === 0) return;
    const [first, last] = this.range;
    const from = Math.max(0, first - 4);
    const to = Math.min(this.count, last + 4);
    const shift = this.isScaled ? this.lastScroll - this.top : 0;
    const wanted = new Map();
    for (let index = from; index < to; index += 1) {
      const row = this.rowAt(index);
      let key = row ? this.keyOf(row) : `#${index}`;
      // Pages that were read at different times may tell a row twice.
      if (wanted.has(key)) key = `${key}#${index}`;
      wanted.set(key, [index, row]);
      // A row that was not read yet keeps its element, and with it the focus.
      const blank = this.shown.get(`#${index}`);
      if (row && blank && !this.shown.has(key)) {
        this.shown.delete(`#${index}`);
        this.shown.set(key, blank);
      }
    }
    const active = document.activeElement;
    for (const [key, element] of this.shown) {
      if (wanted.has(key) || element === this.pinned) continue;
      this.shown.delete(key);
      if (element.contains(active)) this.scroller.focus(inPlace);
      element.remove();
      element.querySelector(".ask")?.remove();
      this.spare.push(element);
    }
    const elements = [];
    for (const [key, [index, row]] of wanted) {
      let element = this.shown.get(key);
      if (!element) {
        element = this.spare.pop() ?? this.make();
        this.shown.set(key, element);
      }
      element.index = index;
      element.row = row;
      const place = `translateY(${index * this.rowHeight + shift}px)`;
      if (element.style.transform !== place) element.style.transform = place;
      element.setAttribute("aria-posinset", index + 1);
      element.setAttribute("aria-setsize", this.count);
      element.classList.toggle("blank", !row);
      element.classList.toggle("odd", index % 2 === 1);
      if (row) this.fill(element, row, index);
      elements.push(element);
    }
    this.order(elements, document.activeElement);
    this.setStops(elements, from, to);
    this.onRange?.(first, last);
  }

  make() {
    const element = this.template.content.firstElementChild.cloneNode(true);
    element.parts = {};
    for (const part of element.querySelectorAll("[class], [data-do]")) {
      element.parts[part.dataset.do ?? part.classList[0]] ??= part;
    }
    return element;
  }

  /** Puts elements in their order without moving the one that has the focus, which would lose it. */
  order(elements, active) {
    const pivot = elements.findIndex((element) => element.contains(active));
    if (pivot >= 0) {
      let next = elements[pivot];
      for (let index = pivot - 1; index >= 0; index -= 1) {
        if (elements[index].nextElementSibling !== next) this.space.insertBefore(elements[index], next);
        next = elements[index];
      }
    }
    for (let index = Math.max(0, pivot + (pivot < 0 ? 0 : 1)); index < elements.length; index += 1) {
      const before = index > 0 ? elements[index - 1] : this.probe;
      if (before.nextElementSibling !== elements[index]) before.after(elements[index]);
    }
  }

  /** Only one row is a stop of the Tab key, with the controls in it. */
  setStops(elements, from, to) {
    const stop = this.current >= from && this.current < to ? this.current : this.range[0];
    for (const element of elements) {
      const index = element.index === stop && element.row ? 0 : -1;
      if (element.tabIndex === index && element.isReady) continue;
      element.isReady = true;
      element.tabIndex = index;
      for (const control of element.querySelectorAll("button, select")) control.tabIndex = index;
    }
  }

  focused(event) {
    const element = event.target.closest?.(".row");
    if (!element || element.index === this.current) return;
    this.current = element.index;
    this.setStops([...this.shown.values()], 0, this.count);
  }

  focusRow(index) {
    if (this.count === 0) return;
    this.current = Math.max(0, Math.min(this.count - 1, index));
    const top = this.current * this.rowHeight;
    if (top < this.top) this.go(top);
    else if (top + this.rowHeight > this.top + this.view) this.go(top + this.rowHeight - this.view);
    else this.draw();
    for (const element of this.shown.values()) {
      if (element.index === this.current) element.focus(inPlace);
    }
  }

  pressed(event) {
    if (event.target.closest("select, input, .ask") || event.ctrlKey || event.metaKey) return;
    const element = event.target.closest(".row");
    if (this.onKey?.(event, element)) {
      event.preventDefault();
      return;
    }
    if (event.altKey) return;
    const page = Math.max(1, Math.floor(this.view / this.rowHeight) - 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.focusRow(this.current + steps[event.key]);
  }
}

/** Asks inside of a row. The safe answer has the focus, and is where the pointer is. */
function ask(element, question, yes) {
  if (element.querySelector(".ask")) return;
  const panel = id("ask").content.firstElementChild.cloneNode(true);
  const text = panel.querySelector("p");
  text.textContent = question;
  panel.setAttribute("aria-label", question);
  const close = () => {
    panel.remove();
    element.focus(inPlace);
  };
  panel.addEventListener("click", (event) => {
    const answer = event.target.closest("[data-do]")?.dataset.do;
    event.stopPropagation();
    if (!answer) return;
    close();
    if (answer === "yes") yes();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  });
  element.append(panel);
  panel.querySelector("[data-do=no]").focus(inPlace);
}

function setIcon(button, name) {
  const use = button.querySelector("use");
  if (use.getAttribute("href") !== name) use.setAttribute("href", name);
}

function label(element, text) {
  if (element.getAttribute("aria-label") === text) return;
  element.setAttribute("aria-label", text);
  if (element.tagName === "BUTTON") element.title = text;
}

function showDetails(row) {
  const dialog = id("details");
  setText(id("details-title"), row.name);
  const facts = [
    ["State", capital(stateText(row))], ["Error", row.error], ["Size", amountText(row)], ["File", row.path],
    ["Priority", row.priority === null ? "" : String(row.priority)], [row.urls.length > 1 ? "URLs" : "URL",
      row.urls.map(shortURL).join("\n")], ["GID", row.gid],
  ];
  const list = id("details-list");
  list.replaceChildren();
  for (const [name, value] of facts) {
    if (value) list.append(make("dt", {}, name), make("dd", {}, value));
  }
  dialog.showModal();
}

function amountText(row) {
  if (row.total > row.received) return `${bytes(row.received)} of ${bytes(row.total)}`;
  return row.received > 0 ? bytes(row.received) : row.total === 0 && row.state !== "complete" ? "size unknown" : "0 B";
}

function stateText(row) {
  switch (row.state) {
    case "active": return row.step ? `Processing: ${inWords(row.step)}` : "Downloading";
    case "paused": return "Paused";
    case "complete": return "Complete";
    case "error": return "Failed";
    case "removed": return "Removed";
    default: return /^(wait|trying again)/.test(row.reason) || !row.reason
      ? capital(row.reason || "Waiting") : `Waiting: ${row.reason}`;
  }
}

/** The downloads that are active, then those that wait, in pages that are read as they come into view. */
export class Queue {
  constructor(app) {
    this.app = app;
    this.active = [];
    this.waiting = 0;
    this.pages = new Map();
    this.isStale = true;
    this.isDragging = false;
    this.steps = new Map();
    this.scroller = id("queue");
    this.list = new VirtualList(this.scroller, id("row"), {
      rowAt: (index) => this.rowAt(index), keyOf: (row) => row.gid,
      fill: (element, row, index) => this.fill(element, row, index),
      onRange: (first, last) => this.ranged(first, last), onKey: (event, element) => this.key(event, element),
    });
    this.scroller.addEventListener("click", (event) => this.clicked(event));
    this.scroller.addEventListener("change", (event) => this.changed(event));
    this.scroller.addEventListener("pointerdown", (event) => this.grab(event));
  }

  rowAt(index) {
    if (index < this.active.length) return this.active[index];
    const place = index - this.active.length;
    return this.pages.get(Math.floor(place / pageSize))?.rows[place % pageSize];
  }

  ranged(first, last) {
    setText(id("queue-place"), this.list.count === 0 ? ""
      : `${count(Math.min(first + 1, last))}–${count(last)} of ${count(this.list.count)}`);
    if (this.wantedPages().some((page) => !this.pages.has(page))) this.app.wake("pages", 60);
  }

  /** The pages in view, and those right beside it. */
  wantedPages(active = this.active.length, waiting = this.waiting) {
    const [first, last] = this.list.range;
    const from = Math.max(0, first - 10 - active);
    const to = Math.min(waiting, last + 10 - active);
    const pages = [];
    for (let page = Math.floor(from / pageSize); page * pageSize < to; page += 1) pages.push(page);
    return pages.slice(0, 5);
  }

  /** The calls for pages that are not there or, if `isDue`, may have changed, with the numbers that are told now. */
  calls(isDue, active, waiting) {
    const now = performance.now();
    const isOld = (page) => !this.pages.has(page) || now - this.pages.get(page).at > 2000;
    return this.wantedPages(active, waiting).filter((page) => isDue || isOld(page))
      .map((page) => ({ page, call: ["aria2.tellWaiting", page * pageSize, pageSize, statusKeys] }));
  }

  /** Takes what the server tells, and keeps the place. */
  take(active, waiting, pages) {
    if (this.isDragging) return;
    const mark = this.list.mark();
    if (active) this.active = active;
    this.waiting = waiting;
    for (const [page, rows] of pages) {
      this.pages.delete(page);
      this.pages.set(page, { rows, at: performance.now() });
    }
    while (this.pages.size > mostPages) this.pages.delete(this.pages.keys().next().value);
    this.list.update(this.active.length + waiting, mark, (gid) => this.indexOf(gid, pages.map((entry) => entry[0])));
    id("queue-empty").hidden = this.list.count > 0;
    this.follow();
  }

  indexOf(gid, pages) {
    const index = this.active.findIndex((row) => row.gid === gid);
    if (index >= 0) return index;
    for (const page of pages) {
      const place = this.pages.get(page)?.rows.findIndex((row) => row.gid === gid) ?? -1;
      if (place >= 0) return this.active.length + page * pageSize + place;
    }
    return -1;
  }

  /** Puts the focus on a row that was moved, as soon as it is where it was moved to. */
  follow() {
    if (!this.followed) return;
    const index = this.indexOf(this.followed, this.pages.keys());
    if (index >= 0) this.list.focusRow(index);
    this.followed = null;
  }

  fill(element, row, index) {
    const parts = element.parts;
    const isWaiting = row.state !== "active";
    if (element.gid !== row.gid || element.label !== row.name) {
      element.gid = row.gid;
      element.label = row.name;
      setText(parts.head, row.name.slice(0, row.split));
      setText(parts.tail, row.name.slice(row.split));
      parts.details.title = row.name;
      label(parts.up, `Move up ${row.name}`);
      label(parts.down, `Move down ${row.name}`);
      label(parts.remove, `Remove ${row.name}`);
      label(parts.priority, `Priority of ${row.name}`);
      label(parts.bar, `Progress of ${row.name}`);
    }
    const state = stateText(row);
    setText(parts.state, state);
    if (parts.state.title !== state) parts.state.title = state;
    element.dataset.state = row.step ? "step" : /^trying again|^waiting for (the net|disk)/.test(row.reason)
      ? "trouble" : row.state;
    const percent = row.part === null ? "" : `${Math.floor(row.part * 100)} %`;
    const amount = amountText(row);
    label(element, [row.name, state, percent].filter(Boolean).join(", "));
    setText(parts.amount, percent ? `${amount} · ${percent}` : amount);
    setText(parts.rate, row.rate > 0 ? speed(row.rate) : "");
    setText(parts.left, Number.isFinite(row.left) ? `${duration(row.left)} left` : "");
    const fill = parts.bar.firstElementChild;
    const scale = `scaleX(${row.part ?? 0})`;
    if (fill.style.transform !== scale) fill.style.transform = scale;
    if (row.part === null) parts.bar.removeAttribute("aria-valuenow");
    else parts.bar.setAttribute("aria-valuenow", Math.floor(row.part * 100));
    parts.bar.setAttribute("aria-valuetext", percent ? `${percent}, ${amount}` : amount);
    const isPaused = row.state === "paused";
    label(parts.toggle, `${isPaused ? "Resume" : "Pause"} ${row.name}`);
    setIcon(parts.toggle, isPaused ? "#i-resume" : "#i-pause");
    parts.handle.hidden = !isWaiting;
    const place = index - this.active.length;
    this.enable(element, parts.up, isWaiting && place > 0);
    this.enable(element, parts.down, isWaiting && place < this.waiting - 1);
    this.fillPriority(parts.priority, row.priority ?? 0);
  }

  fillPriority(select, priority) {
    const value = String(priority);
    select.disabled = !this.app.methods.has("downpipe.changePriority");
    if (select.value === value && select.shown === value) return;
    select.shown = value;
    select.querySelector("[data-other]")?.remove();
    if (![...select.options].some((option) => option.value === value)) {
      select.append(make("option", { value, "data-other": "" }, value));
    }
    select.value = value;
  }

  enable(element, button, isEnabled) {
    if (button.disabled === !isEnabled) return;
    // A button that is disabled would swallow the keys of its row.
    if (!isEnabled && button === document.activeElement) element.focus(inPlace);
    button.disabled = !isEnabled;
  }

  clicked(event) {
    const button = event.target.closest("button[data-do]");
    const element = event.target.closest(".row");
    if (button && element?.row) this.perform(button.dataset.do, element);
  }

  perform(what, element) {
    const row = element.row;
    const act = (method, done, ...parameters) => this.app.act(method, done, row.gid, ...parameters);
    switch (what) {
      case "details": return showDetails(row);
      case "toggle": return row.state === "paused" ? act("aria2.unpause", `Resumed ${row.name}`)
        : act("aria2.pause", `Paused ${row.name}`);
      case "up": return this.move(row, -1);
      case "down": return this.move(row, 1);
      case "remove": {
        const what = row.received > 0 ? " What was received is deleted." : "";
        return ask(element, `Remove this download?${what} This cannot be undone.`, () => {
          act("aria2.remove", `Removed ${row.name}`);
        });
      }
    }
  }

  key(event, element) {
    if (!element?.row) return false;
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      this.move(element.row, event.key === "ArrowUp" ? -1 : 1);
      return true;
    }
    if (event.altKey || event.target !== element) return false;
    const what = { " ": "toggle", Enter: "details", Delete: "remove" }[event.key];
    if (!what || (event.repeat && what !== "details")) return Boolean(what);
    this.perform(what, element);
    return true;
  }

  changed(event) {
    const row = event.target.closest(".row")?.row;
    if (!row || event.target.dataset.do !== "priority") return;
    event.target.shown = null;
    const text = event.target.selectedOptions[0].textContent;
    this.app.act("downpipe.changePriority", `Priority of ${row.name}: ${text}`, row.gid, Number(event.target.value));
  }

  /** Moves by steps. Those that are asked for while a move is under way become one. */
  async move(row, step) {
    if (row.state === "active") return this.app.announce("A download that runs has no place among those that wait.");
    const isUnderWay = this.steps.has(row.gid);
    this.steps.set(row.gid, (this.steps.get(row.gid) ?? 0) + step);
    if (isUnderWay) return;
    let sum = this.steps.get(row.gid);
    while (sum !== 0) {
      this.steps.set(row.gid, 0);
      await this.place(row, sum, "POS_CUR");
      sum = this.steps.get(row.gid);
    }
    this.steps.delete(row.gid);
  }

  async place(row, number, how) {
    const hasFocus = this.scroller.contains(document.activeElement);
    const place = await this.app.act("aria2.changePosition", null, row.gid, number, how);
    if (place === undefined) return;
    this.app.announce(`${row.name} is now at place ${count(place + 1)} of ${count(this.waiting)}`);
    if (hasFocus) this.followed = row.gid;
  }

  // Dragging by pointer.

  grab(event) {
    const handle = event.target.closest(".handle");
    const element = event.target.closest(".row");
    if (!handle || !element?.row || event.button !== 0 || this.isDragging) return;
    event.preventDefault();
    const { scroller, list } = this;
    const row = element.row;
    const from = element.index - this.active.length;
    const box = () => scroller.getBoundingClientRect();
    const ghost = make("div", { className: "ghost" }, row.name);
    const line = make("div", { className: "target" });
    scroller.append(ghost, line);
    this.isDragging = true;
    list.pinned = element;
    element.classList.add("dragged");
    scroller.setPointerCapture(event.pointerId);
    let y = event.clientY;
    let gap = from;
    let frame = 0;

    // The gap between rows that is next to the pointer, counted among those that wait.
    const step = () => {
      const { top, height } = box();
      const inside = y - top;
      const edge = Math.min(48, height / 5);
      const pull = inside < edge ? inside - edge : inside > height - edge ? inside - height + edge : 0;
      // Where a drag begins near the edge, it does not scroll until it goes there.
      if (pull * (y - event.clientY) > 0) list.go(list.top + Math.max(-24, Math.min(24, pull / 3)));
      const index = Math.round((list.top + inside) / list.rowHeight);
      gap = Math.max(0, Math.min(this.waiting, index - this.active.length));
      const lineY = (gap + this.active.length) * list.rowHeight - list.top + list.lastScroll;
      line.style.transform = `translateY(${lineY}px)`;
      ghost.style.transform = `translateY(${inside + list.lastScroll}px)`;
      frame = requestAnimationFrame(step);
    };
    step();

    const move = (moved) => { y = moved.clientY; };
    const end = (isDropped) => {
      cancelAnimationFrame(frame);
      scroller.removeEventListener("pointermove", move);
      scroller.removeEventListener("pointerup", drop);
      scroller.removeEventListener("pointercancel", cancel);
      scroller.removeEventListener("lostpointercapture", cancel);
      removeEventListener("keydown", escape, true);
      ghost.remove();
      line.remove();
      element.classList.remove("dragged");
      list.pinned = null;
      this.isDragging = false;
      list.draw();
      // Without the row itself, those behind it are one place further up.
      const target = gap > from ? gap - 1 : gap;
      if (isDropped && target !== from) this.place(row, target, "POS_SET");
    };
    const drop = () => end(true);
    const cancel = (event) => {
      // A finger is first captured by the handle, which then loses it to the list.
      if (event.target === scroller) end(false);
    };
    const escape = (pressed) => {
      if (pressed.key !== "Escape") return;
      pressed.preventDefault();
      pressed.stopPropagation();
      end(false);
    };
    scroller.addEventListener("pointermove", move);
    scroller.addEventListener("pointerup", drop);
    scroller.addEventListener("pointercancel", cancel);
    scroller.addEventListener("lostpointercapture", cancel);
    addEventListener("keydown", escape, true);
  }
}

/** Ended downloads, newest first. They are read as one scrolls down; all of them when one searches. */
export class History {
  constructor(app) {
    this.app = app;
    this.rows = [];
    this.shown = [];
    this.told = 0;
    this.total = 0;
    this.isStale = true;
    this.isWhole = false;
    this.scroller = id("history");
    this.search = id("search");
    this.filter = id("filter");
    this.list = new VirtualList(this.scroller, id("old-row"), {
      rowAt: (index) => this.shown[index], keyOf: (row) => row.gid,
      fill: (element, row) => this.fill(element, row),
      onRange: (first, last) => { if (last + 20 > this.shown.length && !this.isWhole) this.app.wake("history", 60); },
      onKey: (event, element) => this.key(event, element),
    });
    this.scroller.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-do]");
      const element = event.target.closest(".row");
      if (button && element?.row) this.perform(button.dataset.do, element);
    });
    let timer = 0;
    const apply = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.list.top = 0;
        this.show();
        this.app.wake("history", 0);
      }, 150);
    };
    this.search.addEventListener("input", apply);
    this.filter.addEventListener("change", apply);
    id("clear").addEventListener("click", () => this.askToClear(true));
    id("clear-no").addEventListener("click", () => this.askToClear(false));
    id("clear-yes").addEventListener("click", () => {
      this.askToClear(false);
      // The button itself is disabled once nothing is left.
      this.search.focus();
      this.app.act("aria2.purgeDownloadResult", "Cleared the history");
    });
    id("clear-ask").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.askToClear(false);
    });
  }

  get isFiltered() { return this.search.value.trim() !== "" || this.filter.value !== ""; }

  askToClear(isAsking) {
    id("clear-ask").hidden = !isAsking;
    setText(id("clear-question"), `Remove all ${count(this.total)} ended downloads from the list? `
      + "Complete files stay; what was received of failed ones is deleted. This cannot be undone.");
    id(isAsking ? "clear-no" : "clear").focus();
  }

  /** Takes the numbers of ended downloads, which tell whether there are others. */
  expect(told, total) {
    if (told !== this.told || total !== this.total) this.isStale = true;
    [this.told, this.total] = [told, total];
    id("clear").disabled = total === 0;
  }

  /** Reads what is new, and the next page if it is in view. */
  async read(link) {
    if (this.isStale) {
      this.isStale = false;
      const newest = await this.page(link, 0, pageSize);
      if (!newest) return;
      // Where the newest meet those that are known, only these are new.
      const first = this.rows[0]?.gid;
      const known = first === undefined ? -1 : newest.findIndex((row) => row.gid === first);
      const fits = known >= 0 && this.rows.length + known <= this.told
        && newest.slice(known).every((row, index) => row.gid === this.rows[index]?.gid);
      const isGrown = fits && this.total - this.readTotal === known;
      // A download that was tried again can end at the place it had, with another outcome.
      this.rows = isGrown ? [...newest, ...this.rows.slice(newest.length - known)].slice(0, mostHistory) : newest;
      this.readTotal = this.total;
      this.isWhole = this.rows.length >= Math.min(this.told, mostHistory) || newest.length < pageSize;
      this.show();
    }
    const [, last] = this.list.range;
    const isNear = last + 20 > this.shown.length;
    if (this.isWhole || !(isNear || this.isFiltered)) return;
    const next = await this.page(link, this.rows.length, this.isFiltered ? 1000 : pageSize);
    if (!next) return;
    const gids = new Set(this.rows.map((row) => row.gid));
    const added = next.filter((row) => !gids.has(row.gid));
    this.rows = [...this.rows, ...added].slice(0, mostHistory);
    this.isWhole = added.length === 0 || this.rows.length >= Math.min(this.told, mostHistory);
    this.show();
  }

  async page(link, offset, size) {
    const [reply] = await link.batch([["aria2.tellStopped", -1 - offset, size, statusKeys]]);
    return reply.status === "fulfilled" ? reply.value.map(readStatus) : null;
  }

  show() {
    const mark = this.list.mark();
    const words = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const state = this.filter.value;
    this.shown = !this.isFiltered ? this.rows : this.rows.filter((row) => {
      if (state && row.state !== state) return false;
      row.text ??= `${row.name}\n${row.urls.join("\n")}\n${row.error}`.toLowerCase();
      return words.every((word) => row.text.includes(word));
    });
    const places = new Map(this.shown.map((row, index) => [row.gid, index]));
    this.list.update(this.shown.length, mark, (gid) => places.get(gid) ?? -1);
    const empty = id("history-empty");
    empty.hidden = this.shown.length > 0;
    setText(empty.firstElementChild, this.isFiltered ? this.isWhole ? "No ended download is like this." : "Searching…"
      : "Nothing has ended yet.");
    const older = this.total - Math.min(this.told, mostHistory);
    setText(id("history-place"), (this.isFiltered
      ? `${count(this.shown.length)} of ${count(this.rows.length)} that were read`
      : `${count(this.rows.length)} of ${count(this.total)} read`)
      + (older > 0 ? `; ${count(older)} older ones are kept, but not told (max-download-result)` : ""));
  }

  fill(element, row) {
    const parts = element.parts;
    element.dataset.state = row.state;
    if (element.gid !== row.gid || element.label !== row.name) {
      element.gid = row.gid;
      element.label = row.name;
      setText(parts.head, row.name.slice(0, row.split));
      setText(parts.tail, row.name.slice(row.split));
      parts.details.title = row.name;
      label(parts.retry, `Retry ${row.name}`);
      label(parts.forget, `Remove ${row.name} from the list`);
    }
    const text = row.state !== "error" ? stateText(row)
      : capital(row.error || "Failed, and the server gives no reason: try it again, or look into its log.");
    setText(parts.state, text);
    if (parts.state.title !== text) parts.state.title = text;
    label(element, `${row.name}, ${text}`);
    setText(parts.amount, row.total > 0 ? amountText(row) : "");
    parts.retry.hidden = row.state === "complete";
  }

  key(event, element) {
    if (!element?.row || event.altKey || event.target !== element) return false;
    const what = { Enter: "details", Delete: "forget" }[event.key];
    if (what && !event.repeat) this.perform(what, element);
    return Boolean(what);
  }

  perform(what, element) {
    const row = element.row;
    switch (what) {
      case "details": return showDetails(row);
      case "retry": return this.retry(row);
      case "forget": {
        const what = row.state === "complete" ? " Its file stays." : row.state === "error" && row.received > 0
          ? " What was received is deleted." : "";
        return ask(element, `Remove this from the list?${what} This cannot be undone.`, () => {
          this.app.act("aria2.removeDownloadResult", `Removed ${row.name} from the list`, row.gid);
        });
      }
    }
  }

  async retry(row) {
    const done = `${row.name} is in the queue again`;
    if (this.app.methods.has("downpipe.retry")) return this.app.act("downpipe.retry", done, row.gid);
    // A server without the method gets the URLs again, as AriaNg does.
    const link = this.app.link;
    try {
      const [options, uris] = await Promise.all(
        [link.call("aria2.getOption", row.gid), link.call("aria2.getUris", row.gid)]);
      delete options.gid;
      delete options.pause;
      await link.call("aria2.addUri", [...new Set(uris.map((uri) => uri.uri))], options);
      await this.app.act("aria2.removeDownloadResult", done, row.gid);
    } catch (error) {
      this.app.notice(`${row.name}: ${error.message}`, true);
    }
  }
}
