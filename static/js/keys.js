// @ts-check
// Keyboard. The page says which key does what: <button data-key="e">, <a data-key="g i">, <button data-key="mod+enter">.
// "mod" is Ctrl or Cmd. A key presses the element with click(): never with form.requestSubmit(), because htmx 2 sends
// the name and value of the button that was last clicked or focused, not of the submitter it was given.
//
// Single letters can be switched off (<html data-keys="off">, WCAG 2.1.4). Nothing happens while the person types,
// while an input method composes (Chinese, Japanese), when a key is held down, or behind an open dialog.

export const PREFIX_MS = 1_200;
let prefix = "";
let prefixAt = 0;

/** @param {KeyboardEvent} e */
function keyOf(e) {
  const key = e.key.toLowerCase();
  return e.ctrlKey || e.metaKey ? `mod+${key}` : key;
}

/** @param {EventTarget|null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}

/** The visible element for a key; inside the open dialog if there is one. @param {string} key */
function elementFor(key) {
  const scope = document.querySelector("dialog[open]") ?? document;
  const found = [...scope.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
  return found.find((el) => el instanceof HTMLElement && el.checkVisibility() && !el.matches("[disabled], [aria-disabled=true]"));
}

/** Fields are focused, everything else is clicked. @param {HTMLElement} el */
function press(el) {
  if (el instanceof HTMLInputElement) { el.focus(); el.select(); } else el.click();
}

/** J and K: open the next or previous row. @param {number} step */
function moveInList(step) {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("stable-list li:not([data-gone], [data-left]) > a")]);
  const current = links.findIndex((a) => a.hasAttribute("aria-current"));
  const link = links[current < 0 ? 0 : current + step];
  link?.focus();
  link?.click();
}

document.addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.repeat || e.isComposing || e.altKey) return;
  const key = keyOf(e);
  const isChord = key.startsWith("mod+") || key === "escape";
  if (!isChord && (isTyping(e.target) || document.documentElement.dataset.keys === "off")) return;

  const sequence = prefix && performance.now() - prefixAt < PREFIX_MS ? `${prefix} ${key}` : key;
  prefix = key === "g" && sequence === "g" ? "g" : "";
  prefixAt = performance.now();
  if (prefix) return;

  const el = elementFor(sequence);
  if (el instanceof HTMLElement) { e.preventDefault(); press(el); return; }
  if (document.querySelector("dialog[open]")) return;
  if (key === "j") moveInList(+1);
  if (key === "k") moveInList(-1);
});
