// The list of tasks: completion of the search, selection, actions on many tasks, undo.

import { confirm, post, toast, toastError } from "./api.js";
import { refresh, refreshSoon } from "./console.js";

const table = /** @type {HTMLTableElement} */ (document.getElementById("tasks"));
const bulk = /** @type {HTMLElement} */ (document.getElementById("bulk"));
const query = new URLSearchParams(location.search).get("q") ?? "";
let isAllMatching = false;

// ---- selection ----

/** @returns {HTMLInputElement[]} */
const boxes = () => [...table.querySelectorAll("#rows input[type=checkbox]")].map((box) => /** @type {HTMLInputElement} */ (box));
const selected = () => boxes().filter((box) => box.checked).map((box) => box.value);
/** @type {HTMLInputElement | undefined} */
let lastBox;

table.addEventListener("click", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.type !== "checkbox") return;
  const all = boxes();
  if (event.shiftKey && lastBox && all.includes(lastBox)) {
    const [from, to] = [all.indexOf(lastBox), all.indexOf(box)].sort((a, b) => a - b);
    for (const other of all.slice(from, (to ?? 0) + 1)) other.checked = box.checked;
  }
  lastBox = box;
  isAllMatching = false;
  showSelection();
});

function showSelection() {
  const count = selected().length;
  bulk.hidden = count === 0 && !isAllMatching;
  const text = /** @type {HTMLElement} */ (document.getElementById("bulk-count"));
  text.textContent = isAllMatching ? "All tasks that match are selected" : `${count} selected`;
}

document.getElementById("bulk-all")?.addEventListener("click", () => {
  isAllMatching = true;
  for (const box of boxes()) box.checked = true;
  showSelection();
});
document.getElementById("bulk-none")?.addEventListener("click", clear);

function clear() {
  isAllMatching = false;
  for (const box of boxes()) box.checked = false;
  showSelection();
}

// ---- actions on many tasks ----

bulk.addEventListener("click", async (event) => {
  const button = /** @type {Element} */ (event.target).closest("[data-bulk]");
  if (!(button instanceof HTMLButtonElement)) return;
  const action = button.dataset.bulk === "cancel" ? "cancel" : "delete";
  const ids = selected();
  const what = isAllMatching ? { action, query } : { action, ids };
  button.disabled = true;
  try {
    const { matched, isMore } = await post("/api/v1/tasks/bulk", { ...what, dryRun: true });
    const number = `${matched.toLocaleString("en")} ${matched === 1 ? "task" : "tasks"}`;
    const verb = action === "cancel" ? "Cancel" : "Delete";
    const isSure = await confirm({
      title: `${verb} ${number}?`,
      text:
        (action === "cancel" ? "Their work stops, and their results are lost." : "You can undo this for ten seconds.") +
        (isMore ? ` More tasks match; one request changes ${matched.toLocaleString("en")} of them.` : ""),
      yes: `${verb} ${number}`,
    });
    if (!isSure) return;
    const report = await post("/api/v1/tasks/bulk", what);
    const refused = /** @type {{ taskId: string, why: string }[]} */ (report.refused);
    if (refused.length > 0) {
      await confirm({
        title: `${report.changed} of ${report.changed + refused.length} tasks changed`,
        text: "These tasks were refused:",
        detail: refused.map(({ taskId, why }) => `${taskId}  ${why}`).join("\n"),
        yes: "Close",
      });
    } else if (action === "cancel") {
      toast(`${report.changed} cancelled`);
    }
    // Also after refusals: some were deleted.
    if (report.deleted?.length > 0) offerUndo(report.deleted);
    clear();
    if (action === "delete") refresh({ insertRows: true });
    else refreshSoon();
  } catch (error) {
    toastError(error);
  } finally {
    button.disabled = false;
  }
});

/** @param {string[]} ids */
function offerUndo(ids) {
  toast(`${ids.length} ${ids.length === 1 ? "task" : "tasks"} deleted`, {
    action: "Undo",
    seconds: 9,
    onAction: async () => {
      try {
        const { changed, refused } = await post("/api/v1/tasks/bulk", { action: "undelete", ids });
        if (refused.length > 0) toast(`${changed} restored; for ${refused.length} the time had passed`, { kind: "error" });
        await refresh({ insertRows: true });
      } catch (error) {
        toastError(error);
      }
    },
  });
}

const deleted = sessionStorage.getItem("outlast-deleted");
if (deleted) {
  sessionStorage.removeItem("outlast-deleted");
  offerUndo(JSON.parse(deleted));
}

// ---- completion of the search ----

const input = /** @type {HTMLInputElement} */ (document.getElementById("q"));
const list = /** @type {HTMLUListElement} */ (document.getElementById("completions"));
const names = ["status:", "origin:", "tool:", "server:", "owner:", "age:<"];
const statuses = ["working", "input_required", "completed", "failed", "cancelled", "open", "ended"];
let chosen = -1;

input.setAttribute("role", "combobox");
input.setAttribute("aria-controls", "completions");
input.setAttribute("aria-expanded", "false");

/** The word at the caret. */
function word() {
  const end = input.selectionStart ?? input.value.length;
  const start = input.value.lastIndexOf(" ", end - 1) + 1;
  return { start, end, text: input.value.slice(start, end) };
}

/** @param {string} text */
function completions(text) {
  const [name, value] = text.includes(":") ? [text.slice(0, text.indexOf(":")), text.slice(text.indexOf(":") + 1)] : [text, null];
  if (value === null) return names.filter((known) => known.startsWith(name) && name !== "");
  const quote = (/** @type {string} */ found) => (/\s/.test(found) ? `"${found}"` : found);
  const cells = (/** @type {string} */ selector) => [...table.querySelectorAll(selector)].map((cell) => cell.textContent?.trim() ?? "");
  const values = {
    status: statuses,
    origin: ["store", "requested", "hosted"],
    tool: cells("#rows a[data-open]"),
    server: [...(input.dataset.servers ?? "").split("\n"), ...cells("#rows .cell-server")],
    owner: ["me", ...cells("#rows .cell-owner")],
    age: ["<10min", "<1h", "<1d", "<7d"],
  }[name];
  const found = new Set((values ?? []).filter((known) => known && known.startsWith(value) && known !== value));
  return [...found].slice(0, 8).map((known) => `${name}:${quote(known)}`);
}

function suggest() {
  const found = completions(word().text);
  chosen = -1;
  list.replaceChildren(
    ...found.map((text, at) => {
      const item = document.createElement("li");
      item.setAttribute("role", "option");
      item.id = `completion-${at}`;
      item.textContent = text;
      return item;
    }),
  );
  list.hidden = found.length === 0;
  input.setAttribute("aria-expanded", String(!list.hidden));
  input.removeAttribute("aria-activedescendant");
}

/** @param {string} text */
function accept(text) {
  const { start, end } = word();
  const after = text.endsWith(":") || text.endsWith("<") ? "" : " ";
  input.setRangeText(text + after, start, end, "end");
  suggest();
}

function close() {
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
}

input.addEventListener("input", suggest);
input.addEventListener("blur", () => setTimeout(close, 150));
input.addEventListener("keydown", (event) => {
  if (list.hidden) return;
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step !== 0) {
    event.preventDefault();
    chosen = (chosen + step + list.children.length) % list.children.length;
    for (const [at, item] of [...list.children].entries()) item.setAttribute("aria-selected", String(at === chosen));
    input.setAttribute("aria-activedescendant", `completion-${chosen}`);
  } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
    event.preventDefault();
    accept(list.children[chosen]?.textContent ?? "");
  } else if (event.key === "Escape") {
    // Only the list closes: the text and the focus stay.
    event.preventDefault();
    event.stopPropagation();
    close();
  }
});
list.addEventListener("mousedown", (event) => {
  event.preventDefault();
  const item = /** @type {Element} */ (event.target).closest("li");
  if (item) accept(item.textContent ?? "");
});
