// @ts-check
// <stable-list>     rows never move unless the person asks, or nobody is looking.
// <live-log>        a conversation: blocks with a revision, replaced only when theirs has changed.
// <decision-panel>  a press can only decide what was on screen, at rest, when the press began.

const now = () => performance.now();

/**
 * <stable-list pill="pill" hx-get="/inbox/rows/" hx-swap="none" hx-trigger="live:inbox from:body, …"
 *              hx-sync="this:queue last"><ul>…</ul></stable-list>
 *
 * Rows are `<li id="request-812" data-rev="4" data-sort="…">` with one link inside. `data-sort` is compared as text, so
 * pad numbers. A row with `data-gone` is a ghost: decided elsewhere, shown struck through until the list is tidied.
 * An answer holds all rows of the queue; a row it leaves out gets `data-left` and is tidied away like a ghost.
 */
export class StableList extends HTMLElement {
  /** Milliseconds without pointer or key before the list may move by itself. */
  static IDLE = 30_000;

  /** @type {Map<string, HTMLElement>} */
  #waiting = new Map();
  #lastActivity = now();
  #stop = new AbortController();

  connectedCallback() {
    this.#stop = new AbortController();
    const on = { signal: this.#stop.signal };
    const seen = () => { this.#lastActivity = now(); };
    for (const type of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) {
      addEventListener(type, seen, { ...on, passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.apply(); }, on);
    this.pill?.addEventListener("click", () => this.apply(), on);
    this.addEventListener("click", (e) => this.#select(e.target), on);
    this.addEventListener("htmx:afterRequest", (e) => this.#answered(/** @type {CustomEvent} */ (e).detail), on);
    this.#paint();
  }

  disconnectedCallback() { this.#stop.abort(); }

  get list() { return /** @type {HTMLElement} */ (this.querySelector("ul, ol")); }
  get pill() { return document.getElementById(this.getAttribute("pill") ?? ""); }
  /** @returns {Element} */
  get scroller() { return this.closest(".scroll") ?? this; }
  get rows() { return /** @type {HTMLElement[]} */ ([...this.list.children]); }
  get quiet() { return document.hidden || !this.list.children.length || now() - this.#lastActivity > StableList.IDLE; }

  /** The row that was opened is the current one. @param {EventTarget|null} target */
  #select(target) {
    const link = target instanceof Element ? target.closest("li > a") : null;
    if (!link) return;
    for (const old of this.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
  }

  /** @param {{elt: Element, successful?: boolean, xhr: XMLHttpRequest}} detail */
  #answered(detail) {
    if (detail.elt !== this || !detail.successful) return;        // a link inside the list, or an aborted request
    const page = document.createElement("template");
    page.innerHTML = detail.xhr.responseText;
    this.receive([...page.content.querySelectorAll("li[data-rev]")].filter((li) => li instanceof HTMLElement));
  }

  /** @param {HTMLElement[]} rows all rows of the queue, as the server sees it now */
  receive(rows) {
    const listed = new Set(rows.map((li) => li.id));
    for (const li of rows) this.#place(li);
    for (const old of this.rows) old.toggleAttribute("data-left", !listed.has(old.id));
    for (const id of this.#waiting.keys()) if (!listed.has(id)) this.#waiting.delete(id);
    if (this.quiet) this.apply(); else this.#paint();
  }

  /** @param {HTMLElement} li */
  #place(li) {
    const old = document.getElementById(li.id);
    const known = old ?? this.#waiting.get(li.id);
    if (known && Number(known.dataset.rev) >= Number(li.dataset.rev)) return;  // a late answer
    if (old) this.#replace(old, li);
    else if ("gone" in li.dataset) this.#waiting.delete(li.id);                // closed before we ever showed it
    else this.#waiting.set(li.id, li);
  }

  /** Same place, same height; keeps selection and focus. @param {HTMLElement} old @param {HTMLElement} li */
  #replace(old, li) {
    const link = li.querySelector("a");
    const current = old.querySelector("a")?.getAttribute("aria-current");
    if (current) link?.setAttribute("aria-current", current);
    const focused = old.contains(document.activeElement);
    old.replaceWith(li);
    if (focused) link?.focus({ preventScroll: true });
    processByHtmx(li);
  }

  /** Insert what is waiting, drop ghosts, sort; the row the person looks at keeps its place on screen. */
  apply() {
    const anchor = this.querySelector("[aria-current]")?.closest("li") ?? this.#firstVisible();
    const top = anchor?.getBoundingClientRect().top ?? 0;
    const focused = document.activeElement;
    for (const li of this.rows) if (li !== anchor && li.matches("[data-gone], [data-left]")) li.remove();
    for (const li of this.#waiting.values()) { this.list.append(li); processByHtmx(li); }
    this.#waiting.clear();
    this.#sort();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().top - top;
    if (focused instanceof HTMLElement && focused.isConnected) focused.focus({ preventScroll: true });
    this.#paint();
  }

  #sort() {
    /** @param {HTMLElement} li */
    const key = (li) => `${li.dataset.sort ?? ""}\u0000${li.id}`;
    const sorted = this.rows.sort((a, b) => (key(a) < key(b) ? -1 : 1));
    sorted.forEach((li, i) => { if (this.list.children[i] !== li) this.list.insertBefore(li, this.list.children[i]); });
  }

  #firstVisible() {
    const top = this.scroller.getBoundingClientRect().top;
    return this.rows.find((li) => li.getBoundingClientRect().bottom > top);
  }

  #paint() {
    const pill = this.pill;
    if (!pill) return;
    pill.hidden = this.#waiting.size === 0;                        // its bar has a fixed height: nothing shifts
    const count = pill.querySelector("b");
    if (count) count.textContent = String(this.#waiting.size);
  }
}
customElements.define("stable-list", StableList);

/** Rows enter the page outside an htmx swap, so their hx-* attributes must be wired by hand. @param {HTMLElement} li */
function processByHtmx(li) {
  /** @type {any} */ (window).htmx?.process(li);
}

/**
 * Put the blocks of an answer where they belong: every element with an id and a data-rev. One with the same revision
 * stays as it is, with its focus, its selection and what is open in it; an unknown one is appended to the log.
 * @param {string} html @param {Element|null} log
 */
export function merge(html, log) {
  const page = document.createElement("template");
  page.innerHTML = html;
  const box = log?.closest("[data-stick]");
  const atEnd = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  for (const fresh of page.content.querySelectorAll("[id][data-rev]")) {
    if (!(fresh instanceof HTMLElement)) continue;
    const old = document.getElementById(fresh.id);
    if (!old) { if (fresh.matches("article")) log?.append(fresh); continue; }
    if (old.dataset.rev === fresh.dataset.rev) continue;
    for (const details of old.querySelectorAll("details[open][id]")) {
      fresh.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
    }
    old.replaceWith(fresh);
    processByHtmx(fresh);
  }
  if (box && atEnd) box.scrollTop = box.scrollHeight;
  document.body.dispatchEvent(new CustomEvent("live:shown"));
}

/** <live-log hx-get="…" hx-swap="none" hx-trigger="live:thread:812 from:body, …"><article id="…" data-rev="…">… */
export class LiveLog extends HTMLElement {
  #stop = new AbortController();

  connectedCallback() {
    this.#stop = new AbortController();
    this.addEventListener("htmx:afterRequest", (e) => {
      const { elt, successful, xhr } = /** @type {CustomEvent} */ (e).detail;
      if (elt === this && successful) merge(xhr.responseText, this);
    }, { signal: this.#stop.signal });
  }

  disconnectedCallback() { this.#stop.abort(); }
}
customElements.define("live-log", LiveLog);

/**
 * <decision-panel id="panel"> around the header, the notice and the forms of one request.
 * Buttons and links that decide carry `data-decide`. The guard refuses a decision when
 *  - what it says was swapped for something else less than SETTLE ms before the press began (the notice carries
 *    data-says, which changes with the request: fetching the same again, after one's own press, is no change);
 *  - the press began on another button, or before the swap;
 *  - the panel says it is closed (an element with `data-closed`, which a nudge may bring in);
 *  - it came from Enter in a text field, or from a key held down.
 * A refused press fires "decision:held", for a short "The page just changed, look again" message.
 */
export class DecisionPanel extends HTMLElement {
  static SETTLE = 400;

  #changedAt = now();
  #says = "";
  /** @type {{button: Element, at: number}|null} */
  #press = null;
  #stop = new AbortController();
  #observer = new MutationObserver(() => this.#look());

  constructor() {
    super();
    // The answer to a notice whose panel was replaced meanwhile: the new panel says it already.
    this.addEventListener("htmx:beforeSwap", (e) => { if (!this.isConnected) e.preventDefault(); });
  }

  connectedCallback() {
    this.#changed();
    this.#stop = new AbortController();
    const on = { signal: this.#stop.signal };
    this.#observer.observe(this, { childList: true });
    this.addEventListener("htmx:afterSwap", () => this.#look(), on);
    this.addEventListener("htmx:oobAfterSwap", () => this.#look(), on);
    const first = { ...on, capture: true };                       // before htmx, which listens on the form itself
    this.addEventListener("pointerdown", (e) => this.#pressed(e), first);
    this.addEventListener("keydown", (e) => this.#key(e), first);
    this.addEventListener("click", (e) => this.#guard(e, e.target, e.detail > 0), first);
    this.addEventListener("submit", (e) => this.#guard(e, e.submitter, false), first);
    this.addEventListener("input", (e) => this.#typed(e), on);
  }

  disconnectedCallback() { this.#stop.abort(); this.#observer.disconnect(); }

  get closed() { return this.querySelector("[data-closed]") !== null; }

  /** What was swapped may say the same as before. */
  #look() { if (this.#saying() !== this.#says) this.#changed(); }

  #saying() { return this.querySelector("[data-says]")?.getAttribute("data-says") ?? ""; }

  #changed() { this.#says = this.#saying(); this.#changedAt = now(); this.#press = null; }

  /** @param {PointerEvent} e */
  #pressed(e) {
    const button = e.target instanceof Element ? e.target.closest("[data-decide]") : null;
    this.#press = button && { button, at: now() };
  }

  /** @param {KeyboardEvent} e */
  #key(e) {
    const inField = e.target instanceof HTMLInputElement && !["submit", "button", "checkbox", "radio"].includes(e.target.type);
    const plainEnter = e.key === "Enter" && !e.ctrlKey && !e.metaKey;
    if (plainEnter && inField && !e.isComposing) e.preventDefault();           // no implicit submission
    if (e.repeat && (e.key === "Enter" || e.key === " ")) e.preventDefault();
  }

  /** @param {Event} e @param {EventTarget|null} source @param {boolean} byPointer */
  #guard(e, source, byPointer) {
    const button = source instanceof Element ? source.closest("[data-decide]") : null;
    if (!button) return;
    const startedAt = byPointer ? (this.#press?.button === button ? this.#press.at : -Infinity) : now();
    if (!this.closed && startedAt - this.#changedAt >= DecisionPanel.SETTLE) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    this.dispatchEvent(new CustomEvent("decision:held", { bubbles: true }));
  }

  /** Marks a form a person has typed in; nothing may swap it from then on. @param {Event} e */
  #typed(e) {
    const form = e.target instanceof Element ? e.target.closest("form") : null;
    if (form) form.dataset.dirty = "";
  }
}
customElements.define("decision-panel", DecisionPanel);
