// @ts-check
// One WebSocket per tab, carrying small numbered JSON messages ("nudges"), never HTML.
// A nudge says "topic T changed"; the page then fetches HTML over HTTP with htmx. So permissions, language,
// CSRF and the fallback without a socket all share one code path, and a lost nudge costs at most one heartbeat.

/** @typedef {"connecting"|"live"|"reconnecting"|"offline"|"signed-out"|"forbidden"} LiveState */
/** @typedef {{seq: number, topic: string, type: string, id?: number|string, rev?: number}} Nudge */
/** @typedef {{topic: string, block: number|string, at: number, text: string}} Delta */
/** @typedef {{mark: number, seen: Set<number>}} TopicState  mark: everything up to this number has arrived */

const SIGNED_OUT = 4401;
const FORBIDDEN = 4403;

/**
 * Events: "nudge" (detail: Nudge), "delta" (detail: Delta), "resync" (detail: {topics}), "state" (detail: {state}).
 */
export class Live extends EventTarget {
  /** @type {LiveState} */
  state = "connecting";
  /** @type {WebSocket|null} */
  #ws = null;
  /** @type {Map<string, TopicState>} */
  #topics = new Map();
  #tries = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #retry;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #watchdog;
  #heartbeat;
  #base;
  #cap;

  /**
   * @param {string} url
   * @param {{heartbeat?: number, base?: number, cap?: number}} [options] milliseconds
   */
  constructor(url, { heartbeat = 25_000, base = 500, cap = 30_000 } = {}) {
    super();
    this.url = url;
    this.#heartbeat = heartbeat;
    this.#base = base;
    this.#cap = cap;
    addEventListener("online", () => this.reopen());
    addEventListener("pageshow", (e) => { if (e.persisted) this.reopen(); });
    addEventListener("pagehide", () => this.#ws?.close(1000));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#check(); });
  }

  /**
   * Start following a topic. `since` is the number the server printed next to the HTML we are showing (data-seq):
   * everything after it must still arrive, even if it happened before this call.
   * @param {string} topic
   * @param {number} since
   */
  follow(topic, since) {
    const known = this.#topics.get(topic);
    if (known && since >= known.mark) return this;
    this.#topics.set(topic, { mark: since, seen: new Set() });
    this.#send({ type: "follow", topics: [topic], since });
    return this;
  }

  /** @param {string} topic */
  unfollow(topic) {
    if (this.#topics.delete(topic)) this.#send({ type: "unfollow", topics: [topic] });
    return this;
  }

  get topics() { return [...this.#topics.keys()]; }

  open() {
    clearTimeout(this.#retry);
    this.#drop();
    this.#become(this.#tries ? "reconnecting" : "connecting");
    const ws = new WebSocket(this.url);
    this.#ws = ws;
    ws.onopen = () => { this.#followAll(); this.#feedWatchdog(); };
    ws.onmessage = (e) => { if (ws === this.#ws) this.#receive(JSON.parse(e.data)); };
    ws.onclose = (e) => { if (ws === this.#ws) this.#closed(e.code); };
    return this;
  }

  /** Try again now: the network came back, the page came out of the cache, the person signed in again. */
  reopen() {
    if (this.#ws?.readyState === WebSocket.CONNECTING) return;
    this.#tries = 0;
    this.open();
  }

  /** The tab is visible again. A socket that looks open may be dead (laptop sleep), so ask for a sign of life. */
  #check() {
    if (this.#ws?.readyState !== WebSocket.OPEN) return this.reopen();
    this.#send({ type: "ping" });
    this.#feedWatchdog(Math.min(4_000, this.#heartbeat));
  }

  /** @param {object} message */
  #send(message) {
    if (this.#ws?.readyState === WebSocket.OPEN) this.#ws.send(JSON.stringify(message));
  }

  /** From the lowest number any topic has; what other topics have already is recognised as a repeat. */
  #followAll() {
    const since = Math.min(...[...this.#topics.values()].map((t) => t.mark));
    if (this.#topics.size) this.#send({ type: "follow", topics: this.topics, since });
    else this.#send({ type: "ping" });                             // nothing on this page changes by itself
  }

  /** @param {any} m */
  #receive(m) {
    this.#feedWatchdog();
    if (m.type === "ready") return this.#ready(m);
    if (m.type === "hb") return this.#compare(m.seq);
    if (m.type === "delta") return this.#emit("delta", m);       // streamed text: not numbered, may be lost
    const topic = this.#topics.get(m.topic);
    if (!topic || m.seq <= topic.mark || topic.seen.has(m.seq)) return;   // not ours any more, or a replay
    topic.seen.add(m.seq);            // numbers may arrive out of order, so the mark moves only on "ready"
    this.#emit("nudge", m);
  }

  /** The server has sent everything up to m.seq for m.topics. @param {{seq: number, topics: string[], resync: boolean}} m */
  #ready(m) {
    for (const name of m.topics) {
      const topic = this.#topics.get(name);
      if (topic) this.#topics.set(name, { mark: m.seq, seen: new Set([...topic.seen].filter((n) => n > m.seq)) });
    }
    this.#tries = 0;
    this.#become("live");
    if (m.resync) this.#emit("resync", { topics: m.topics });            // the gap was too old to replay
  }

  /** A heartbeat ahead of any mark means something happened that we may have missed: ask. @param {number} seq */
  #compare(seq) {
    if (!this.#topics.size) { this.#tries = 0; this.#become("live"); }
    if ([...this.#topics.values()].some((t) => t.mark < seq)) this.#followAll();
  }

  /** A half-open socket never fires "close"; only silence gives it away. */
  #feedWatchdog(ms = this.#heartbeat * 1.6) {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => { this.#tries ||= 1; this.open(); }, ms);
  }

  /** @param {number} code */
  #closed(code) {
    clearTimeout(this.#watchdog);
    this.#ws = null;
    if (code === SIGNED_OUT) return this.#become("signed-out");
    if (code === FORBIDDEN) return this.#become("forbidden");
    const n = this.#tries++;                       // any other code, 1000 and 1001 too: try again
    this.#become(n >= 2 ? "offline" : "reconnecting");
    const delay = Math.min(this.#cap, this.#base * 2 ** n) * (0.5 + Math.random() / 2);
    this.#retry = setTimeout(() => this.open(), delay);
  }

  #drop() {
    clearTimeout(this.#watchdog);
    const ws = this.#ws;
    this.#ws = null;
    if (ws && ws.readyState < WebSocket.CLOSING) ws.close();
  }

  /** @param {LiveState} state */
  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this.#emit("state", { state });
  }

  /** @param {string} type @param {unknown} detail */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/**
 * Connects a Live to the page:
 *  - follows every [data-follow="topic"][data-seq] in the document, and stops when the element is gone;
 *  - turns nudges into DOM events "live:<topic>" on <body>, at most one per topic per `wait`, for hx-trigger;
 *  - shows the state in <html data-live>, and in the text of [data-live-text] (texts come from its data-* attributes);
 *  - polls ("live:resync") while the socket is down, but never when signed out.
 * @param {Live} live
 * @param {{wait?: number, poll?: number}} [options]
 */
export function bind(live, { wait = 250, poll = 15_000 } = {}) {
  const body = document.body;
  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  const due = new Map();
  /** @param {string} name @param {unknown} [detail] */
  const fire = (name, detail) => body.dispatchEvent(new CustomEvent(name, { detail }));

  live.addEventListener("nudge", (e) => {
    const { topic } = /** @type {CustomEvent<Nudge>} */ (e).detail;
    if (due.has(topic)) return;
    due.set(topic, setTimeout(() => { due.delete(topic); fire(`live:${topic}`); }, wait));
  });
  live.addEventListener("resync", () => fire("live:resync"));
  live.addEventListener("delta", (e) => {
    const delta = /** @type {CustomEvent<Delta>} */ (e).detail;
    streamFor(delta)?.push(delta);
  });
  live.addEventListener("state", () => showState(live.state));
  setInterval(() => { if (live.state === "reconnecting" || live.state === "offline") fire("live:resync"); }, poll);

  /** @type {WeakSet<Element>} */
  const known = new WeakSet();
  const scan = () => followWhatIsShown(live, known);
  body.addEventListener("htmx:afterSettle", scan);
  body.addEventListener("live:shown", scan);                      // blocks that our own scripts put in
  scan();
  showState(live.state);
}

/**
 * Where a delta belongs: the stream of its block, made on first sight inside [data-streams="<topic>"]. A block that the
 * server has rendered already ([data-message]) needs none.
 * @param {Delta} delta
 * @returns {RunStream|null}
 */
function streamFor({ topic, block, at }) {
  const known = document.getElementById(`stream-${block}`);
  if (known instanceof RunStream) return known;
  const box = document.querySelector(`[data-streams="${CSS.escape(topic)}"]`);
  if (!box || document.querySelector(`[data-message="${CSS.escape(String(block))}"]`)) return null;
  const stream = new RunStream();
  stream.id = `stream-${block}`;
  box.append(stream);
  if (at > 0) stream.startAt(at);
  return stream;
}

/**
 * An element counts once, when it enters the page: its data-seq is the number it was rendered at.
 * @param {Live} live @param {WeakSet<Element>} known
 */
function followWhatIsShown(live, known) {
  const shown = new Set();
  for (const el of document.querySelectorAll("[data-follow]")) {
    const topic = el.getAttribute("data-follow") ?? "";
    shown.add(topic);
    if (known.has(el)) continue;
    known.add(el);
    live.follow(topic, Number(el.getAttribute("data-seq")) || 0);
  }
  for (const topic of live.topics) if (!shown.has(topic)) live.unfollow(topic);
}

/** @param {LiveState} state */
function showState(state) {
  document.documentElement.dataset.live = state;
  for (const el of document.querySelectorAll("[data-live-text]")) {
    if (el instanceof HTMLElement) el.textContent = el.getAttribute(`data-${state}`) ?? "";
  }
}

/**
 * <run-stream id="stream-12">: text of the step in progress. Only text nodes are written, so nothing a model says
 * becomes HTML in the browser; when the step is finished the server's rendering replaces this element.
 * `at` is an offset in UTF-16 code units (Python: len(s.encode("utf-16-le")) // 2), so repeats and overlaps are
 * harmless, and a hole is noticed and reported as "stream:hole" for the page to fetch the block.
 */
export class RunStream extends HTMLElement {
  #pending = "";
  /** @type {number|undefined} */
  #frame;
  #length = 0;

  connectedCallback() { this.#length = this.textContent?.length ?? 0; }

  /** The beginning was streamed before this page looked. @param {number} at */
  startAt(at) { this.append("… "); this.#length = at; }

  /** @param {{at: number, text: string}} delta */
  push({ at, text }) {
    const have = this.#length + this.#pending.length;
    if (at > have) { this.dispatchEvent(new CustomEvent("stream:hole", { bubbles: true })); return; }
    if (at + text.length <= have) return;
    this.#pending += text.slice(have - at);
    this.#frame ??= requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    this.#frame = undefined;
    const box = this.closest("[data-stick]");
    const atEnd = box && box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    if (this.lastChild instanceof Text) this.lastChild.appendData(this.#pending);
    else this.append(this.#pending);
    this.#length += this.#pending.length;
    this.#pending = "";
    if (box && atEnd) box.scrollTop = box.scrollHeight;      // follow the end, unless the person scrolled up
  }
}
customElements.define("run-stream", RunStream);
