// @ts-check
// Times that count down. The server says how many seconds are left, so the clock of this machine does not matter.
// <span data-left="842">14 min</span>, inside [data-due] (a deadline: gets "soon", "late") or [data-counts] (gets
// data-over when nothing is left).

const SOON = 15 * 60;
const RING = 50.3;
/** @type {[number, string][]} */
const UNITS = [[86_400, "day"], [3_600, "hour"], [60, "minute"], [1, "second"]];
/** @type {WeakMap<Element, {until: number, whole: number}>} */
const known = new WeakMap();

/** The largest unit that is not zero, as the server writes it. @param {number} seconds */
export function duration(seconds) {
  const rest = Math.max(0, Math.round(seconds));
  const [size, unit] = UNITS.find(([least]) => rest >= least) ?? [1, "second"];
  const language = document.documentElement.lang || "en";
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" }).format(Math.floor(rest / size));
}

/** @param {Element} el */
function show(el) {
  const now = performance.now() / 1000;
  let time = known.get(el);
  if (!time) {
    const left = Number(el.getAttribute("data-left"));
    time = { until: now + left, whole: left };
    known.set(el, time);
  }
  const left = time.until - now;
  const text = duration(Math.ceil(left));
  if (el.textContent !== text) el.textContent = text;
  const due = el.closest("[data-due]");
  if (due) {
    due.classList.toggle("late", left <= 0);
    if (left > 0 && left < SOON) due.classList.add("soon");
  }
  const counts = el.closest("[data-counts]");
  if (counts) {
    const part = time.whole > 0 ? Math.max(0, left / time.whole) : 0;
    counts.querySelector(".ring circle + circle")?.setAttribute("stroke-dasharray", `${part * RING} ${RING}`);
    if (left <= 0) counts.setAttribute("data-over", "");
  }
}

export function tick() {
  for (const el of document.querySelectorAll("[data-left]")) show(el);
  setTimeout(tick, 250);
}
