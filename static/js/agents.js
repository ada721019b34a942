// @ts-check
// The editor of a draft. Everything here presses forms that are in the page and work without it.
//   grip      arrow keys and dragging move an entry: #mover is filled in and its button pressed
//   #options  what is typed marks the form, so that leaving asks; a choice of alternatives switches at once
// Scrolling and focus are kept over a swap, because each press brings the editor anew.

const $ = (/** @type {string} */ selector) => document.querySelector(selector);

/** @param {number} from @param {number} to */
function move(from, to) {
  const mover = $("#mover");
  if (!(mover instanceof HTMLFormElement) || from === to || to < 1 || to > document.querySelectorAll(".mw [data-n]").length) return;
  mover.querySelector("[name=from]")?.setAttribute("value", String(from));
  mover.querySelector("[name=to]")?.setAttribute("value", String(to));
  focusAfter = `#mw-${to} [data-grip]`;
  mover.querySelector("button")?.click();
}

/** @param {EventTarget|null} target */
function rowOf(target) {
  const row = target instanceof Element ? target.closest(".mw [data-n]") : null;
  return row instanceof HTMLElement ? row : null;
}

let focusAfter = "";

document.addEventListener("keydown", (e) => {
  const row = rowOf(e.target);
  if (!row || !(e.target instanceof Element) || !e.target.closest("[data-grip]") || e.altKey || e.ctrlKey || e.metaKey) return;
  const step = { ArrowUp: -1, ArrowDown: +1 }[e.key];
  if (!step) return;
  e.preventDefault();
  if (!e.repeat) move(Number(row.dataset.n), Number(row.dataset.n) + step);
});

// Dragging by the grip, with mouse, pen or finger.
/** @type {HTMLElement|null} */
let dragged = null;
/** @type {HTMLElement|null} */
let over = null;
let behind = false;

document.addEventListener("pointerdown", (e) => {
  const row = rowOf(e.target);
  const grip = e.target instanceof Element ? e.target.closest("[data-grip]") : null;
  if (!row || !(grip instanceof HTMLElement) || e.button !== 0) return;
  dragged = row;
  grip.setPointerCapture(e.pointerId);
});

document.addEventListener("pointermove", (e) => {
  if (!dragged) return;
  dragged.classList.add("dragged");
  const below = rowOf(document.elementFromPoint(e.clientX, e.clientY));
  if (!below) return;
  over?.classList.remove("before", "behind");
  const box = below.getBoundingClientRect();
  behind = e.clientY > box.top + box.height / 2;
  over = below;
  if (over !== dragged) over.classList.add(behind ? "behind" : "before");
});

function drop() {
  const from = Number(dragged?.dataset.n);
  const place = Number(over?.dataset.n) + (behind ? 1 : 0);
  dragged?.classList.remove("dragged");
  over?.classList.remove("before", "behind");
  const wanted = dragged && over && over !== dragged;
  dragged = over = null;
  if (wanted) move(from, place > from ? place - 1 : place);
}
document.addEventListener("pointerup", drop);
document.addEventListener("pointercancel", () => { over = null; drop(); });

// Typed and not saved.
document.addEventListener("input", (e) => {
  const form = e.target instanceof Element ? e.target.closest("#options") : null;
  if (form instanceof HTMLFormElement) form.dataset.dirty = "";
});

// Another alternative: the button beside it, which is all there is without a script.
document.addEventListener("change", (e) => {
  if (e.target instanceof HTMLSelectElement && e.target.matches("[data-switch]")) {
    e.target.closest(".choose")?.querySelector("button")?.click();
  }
});

// The catalogue shows what fits the words that are typed.
document.addEventListener("input", (e) => {
  const field = e.target;
  if (!(field instanceof HTMLInputElement) || !field.dataset.filter) return;
  const words = field.value.toLowerCase().split(/\s+/);
  for (const entry of document.querySelectorAll(field.dataset.filter)) {
    const text = entry.textContent?.toLowerCase() ?? "";
    entry.toggleAttribute("hidden", !words.every((word) => text.includes(word)));
  }
});

/** @type {Map<string, number>} */
const scrolled = new Map();
let at = "";
document.addEventListener("htmx:beforeSwap", () => {
  for (const box of document.querySelectorAll(".editor .scroll")) scrolled.set(box.id, box.scrollTop);
  at = $("#pane-title")?.textContent?.replace(/^\d+/, "") ?? "";
});
document.addEventListener("htmx:afterSwap", () => {
  const now = $("#pane-title")?.textContent?.replace(/^\d+/, "") ?? "";
  for (const [id, top] of scrolled) {
    const box = document.getElementById(id);
    if (box && (id !== "scroll-options" || now === at)) box.scrollTop = top;
  }
});
document.addEventListener("htmx:afterSettle", (e) => {
  const from = /** @type {CustomEvent} */ (e).detail.requestConfig?.elt;
  const opened = from instanceof Element && from.matches(".catalogue *, .mw a, .said a");
  const wrong = $("#options [aria-invalid=true]");
  const wanted = focusAfter ? $(focusAfter) : wrong ?? (opened ? $("#pane-title") : null);
  focusAfter = "";
  if (wanted instanceof HTMLElement) wanted.focus({ preventScroll: wanted !== wrong });
});
