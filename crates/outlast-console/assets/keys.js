// The keyboard: `g` and a letter opens a page, `j` and `k` move through the rows, `?` lists the keys.

/** @type {Map<string, (event: KeyboardEvent) => void>} */
const bound = new Map();
let goesTo = 0;

/**
 * Binds a key, while no text is edited and no dialog is open.
 * @param {string} key
 * @param {(event: KeyboardEvent) => void} action
 */
export function bind(key, action) {
  bound.set(key, action);
}

/** The row that the keys act on. */
export function activeRow() {
  return document.querySelector("[data-row][data-local-active]");
}

/** @param {Element} element */
function isEdited(element) {
  return element.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = /** @type {Element} */ (event.target);
  if (event.key === "Escape" && isEdited(target)) {
    // A search field would lose its text.
    event.preventDefault();
    /** @type {HTMLElement} */ (target).blur();
  }
  if (isEdited(target) || document.querySelector("dialog[open]")) return;
  if (Date.now() < goesTo) {
    goesTo = 0;
    const link = [...document.querySelectorAll("[data-go]")].find((link) => link.getAttribute("data-go") === event.key);
    if (link instanceof HTMLElement) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  const action = bound.get(event.key);
  if (action) action(event);
});

/** @param {number} step */
function moveRow(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (rows.length === 0) return;
  const active = activeRow();
  const at = active ? rows.indexOf(active) + step : step > 0 ? 0 : rows.length - 1;
  const row = rows[Math.max(0, Math.min(rows.length - 1, at))];
  active?.removeAttribute("data-local-active");
  row?.setAttribute("data-local-active", "");
  row?.scrollIntoView({ block: "nearest" });
  const link = row?.querySelector("a[data-open]");
  if (link instanceof HTMLElement) link.focus({ preventScroll: true });
}

bind("g", () => {
  goesTo = Date.now() + 1_500;
});
bind("j", () => moveRow(1));
bind("k", () => moveRow(-1));
bind("Enter", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (target.closest("a, button, summary, input")) return;
  const link = activeRow()?.querySelector("a[data-open]");
  if (link instanceof HTMLElement) link.click();
});
bind("x", () => {
  const box = activeRow()?.querySelector("input[type=checkbox]");
  if (box instanceof HTMLElement) box.click();
});
bind("/", (event) => {
  const search = document.querySelector("[data-search]");
  if (search instanceof HTMLInputElement) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});
bind("?", showKeys);

/** Lists the keys. */
export function showKeys() {
  const dialog = document.getElementById("keys-dialog");
  if (dialog instanceof HTMLDialogElement) dialog.showModal();
}
