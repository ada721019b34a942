// @ts-check
// What every page loads: one socket, the elements, the keys, and a few listeners.
// There is no text in here: messages are data-* attributes of #toasts, so that templates can translate them.
import { Live, bind } from "./live.js";
import { merge } from "./live-ui.js";
import { tick } from "./clock.js";
import "./keys.js";

const url = new URL(document.body.dataset.liveUrl ?? "/ws/live/", location.href);
url.protocol = url.protocol.replace("http", "ws");
const live = new Live(url.href);
bind(live);
live.open();
tick();

if (/Mac|iPhone|iPad/.test(navigator.platform)) document.documentElement.dataset.mac = "";

const toasts = document.getElementById("toasts");

/** @param {string|undefined} text */
function toast(text) {
  const p = document.createElement("p");
  p.className = "toast";
  p.textContent = text ?? "";
  toasts?.replaceChildren(p);
  setTimeout(() => p.remove(), 6_000);
}

// The tab's title tells what waits, on every page. The server renders it; answers bring the badge alone.
function countInTitle() {
  const waiting = document.querySelector("[data-badge=mine]")?.textContent?.trim();
  const title = document.title.replace(/^\(\d+\) /, "");
  const wanted = waiting ? `(${waiting}) ${title}` : title;
  if (document.title !== wanted) document.title = wanted;
}
for (const badge of document.querySelectorAll(".nav [data-badge=mine]")) {
  new MutationObserver(countInTitle).observe(badge, { childList: true, characterData: true, subtree: true });
}
document.addEventListener("htmx:afterSettle", countInTitle);

document.addEventListener("toast", (e) => toast(/** @type {CustomEvent} */ (e).detail.text));
document.addEventListener("decision:held", () => toast(toasts?.dataset.held));

// Signing in (perhaps in another tab) changes the CSRF token: send the one that is valid now, not the one in the form.
document.addEventListener("htmx:configRequest", (e) => {
  const { formData } = /** @type {CustomEvent} */ (e).detail;      // not `parameters`: a proxy, for which `in` is false
  const token = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
  if (token && formData.has("csrfmiddlewaretoken")) formData.set("csrfmiddlewaretoken", token);
});

// Nothing was swapped: the form is as it was, and pressing again is safe because it carries the same key.
const SAID = { 401: "signedOut", 403: "refused", 404: "gone" };
document.addEventListener("htmx:responseError", (e) => {
  const { status } = /** @type {CustomEvent} */ (e).detail.xhr;
  toast(toasts?.dataset[SAID[/** @type {401} */ (status)] ?? "failed"]);
});
document.addEventListener("htmx:sendError", () => toast(toasts?.dataset.offline));
document.addEventListener("htmx:timeout", () => toast(toasts?.dataset.offline));

// A message was taken: show it, and empty the field.
document.addEventListener("htmx:afterRequest", (e) => {
  const { elt, successful, xhr } = /** @type {CustomEvent} */ (e).detail;
  if (!(elt instanceof HTMLFormElement) || !elt.matches("[data-clears]") || !successful || xhr.status !== 200) return;
  elt.querySelector("textarea")?.setAttribute("value", "");
  for (const field of elt.querySelectorAll("textarea")) field.value = "";
  merge(xhr.responseText, document.querySelector("live-log"));
});

// What is open stays open when a timeline is fetched again.
/** @type {string[]} */
let open = [];
document.addEventListener("htmx:beforeSwap", () => {
  open = [...document.querySelectorAll("details[open][id]")].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
});

// After a decision the focus goes to what it led to, after Next to the new heading.
document.addEventListener("htmx:afterSettle", (e) => {
  const { elt, requestConfig } = /** @type {CustomEvent} */ (e).detail;
  const from = requestConfig?.elt;
  if (!(elt instanceof HTMLElement) || !(from instanceof HTMLElement)) return;
  if (from.matches("[data-next], [data-leave]")) document.querySelector("#detail h1")?.focus({ preventScroll: true });
  if (from.matches("[data-opens]") && !matchMedia("(pointer: coarse)").matches) focusForm();
  if (from.matches("form")) document.querySelector("#panel .sent, #panel [aria-invalid=true]")?.focus();
});

/** A form that was opened, by key or by mouse, is typed in next. On touch the screen keyboard would cover it. */
function focusForm() {
  const field = document.querySelector("#answer :is(textarea, .in):not([readonly], [type=hidden])");
  const reason = document.querySelector("#answer > .body #message");      // in a rejection the presets come first
  const first = reason ?? field;
  if (first instanceof HTMLElement) first.focus();
}

document.addEventListener("click", (e) => {
  const target = e.target instanceof Element ? e.target : null;
  const opener = target?.closest("[data-dialog]");
  const dialog = opener && document.getElementById(opener.getAttribute("data-dialog") ?? "");
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();

  const row = target?.closest(".trail tr:has(a[hx-get])");
  if (row && target?.closest("a")) {
    for (const old of document.querySelectorAll(".trail [aria-selected]")) old.removeAttribute("aria-selected");
    row.setAttribute("aria-selected", "true");
  }

  const copier = target?.closest("[data-copy]");
  const source = copier && document.getElementById(copier.getAttribute("data-copy") ?? "");
  if (source) navigator.clipboard.writeText(source.innerText).then(() => toast(toasts?.dataset.copied));
});

// Leaving a form that was typed in asks first. Capture: before htmx.
document.addEventListener("click", (e) => {
  const leaves = e.target instanceof Element && e.target.closest("[data-leave]");
  const form = document.querySelector("form[data-dirty]");
  if (!leaves || !(form instanceof HTMLElement) || confirm(form.dataset.unsaved ?? toasts?.dataset.leave)) return;
  e.preventDefault();
  e.stopImmediatePropagation();
}, { capture: true });

// Which arguments differ from the proposal, while they are typed.
document.addEventListener("input", (e) => {
  const field = e.target;
  const argument = field instanceof Element ? field.closest("[data-original]") : null;
  if (!(argument instanceof HTMLElement) || !("value" in /** @type {object} */ (field))) return;
  const value = /** @type {HTMLInputElement} */ (field).value;
  argument.classList.toggle("changed", value !== argument.dataset.original?.replace(/\r\n?/g, "\n"));
  for (const count of document.querySelectorAll("[data-changed]")) {
    count.textContent = String(document.querySelectorAll("[data-original].changed").length);
  }
});

// A conversation starts at its end.
for (const box of document.querySelectorAll("[data-end]")) box.scrollTop = box.scrollHeight;
