// What every page does: it stays current, shows the state of the connection, and copies texts.

import { base, confirm, post, request, toast, toastError } from "./api.js";
import { activeRow, bind, showKeys } from "./keys.js";
import { morph } from "./morph.js";
import { on, start } from "./stream.js";
import "./badges.js";
import "./task-status.js";
import { synchronise, tick } from "./time.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const live = (main.getAttribute("data-live") ?? "").split(" ").filter(Boolean);
/** The shortest time between two loads of the page, in milliseconds. */
const minInterval = 1_000;
const firstDelay = 150;
let isPaused = false;
let isMissed = false;
let lastLoad = 0;
/** The number of the last load, and of the load whose page is shown. */
let loads = 0;
let shownLoad = 0;
/** @type {number | undefined} */
let timer;

// ---- the page stays current ----

/** Loads the page again soon, and changes what differs. */
export function refreshSoon() {
  if (isPaused || document.hidden) {
    isMissed = true;
    return;
  }
  if (timer !== undefined) return;
  const delay = Math.max(firstDelay, lastLoad + minInterval - Date.now());
  timer = setTimeout(() => refresh({ isAutomatic: true }), delay);
}

/**
 * Loads the page again. An automatic load changes nothing if the viewer pauses the page meanwhile.
 * @param {{ insertRows?: boolean, isAutomatic?: boolean }} [options]
 */
export async function refresh(options = {}) {
  clearTimeout(timer);
  timer = undefined;
  lastLoad = Date.now();
  isMissed = false;
  loads += 1;
  const load = loads;
  const url = new URL(location.href);
  const rows = main.querySelector("[data-rows]");
  // In an empty list, a new row moves no other.
  const insertsRows = options.insertRows ?? (!rows || rows.children.length === 0);
  if (rows && !insertsRows) {
    const known = [...rows.children].map((row) => row.getAttribute("data-key")).filter(Boolean);
    url.searchParams.set("also", known.join(","));
  }
  let response;
  try {
    response = await fetch(url, { headers: { "x-outlast-refresh": "1" } });
  } catch {
    // The stream shows that the connection is broken, and the next `hello` loads the page again.
    isMissed = true;
    return;
  }
  if (response.status === 401) {
    location.reload();
    return;
  }
  if (!response.ok) {
    isMissed = true;
    return;
  }
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  if (isPaused && options.isAutomatic) {
    isMissed = true;
    return;
  }
  const next = parsed.getElementById("main");
  // A later load was faster.
  if (!next || load < shownLoad) return;
  shownLoad = load;
  const csrf = parsed.querySelector('meta[name="csrf"]')?.getAttribute("content");
  if (csrf) document.querySelector('meta[name="csrf"]')?.setAttribute("content", csrf);
  const also = next.querySelector("#also");
  for (const row of also ? [...also.children] : []) {
    const current = rows?.querySelector(`:scope > [data-key="${CSS.escape(row.getAttribute("data-key") ?? "")}"]`);
    if (current) morph(current, row);
  }
  also?.replaceChildren();
  const fresh = morph(main, next, { insertRows: insertsRows });
  synchronise(main);
  tick();
  showNew(rows ? fresh : 0);
  document.dispatchEvent(new CustomEvent("outlast-refreshed"));
}

/** Offers the rows that are not shown. @param {number} count */
function showNew(count) {
  const button = document.getElementById("new-rows");
  if (!button) return;
  button.hidden = count === 0;
  const limit = Number(button.getAttribute("data-limit"));
  button.textContent = `${count >= limit ? `${limit}+` : count} new – show`;
}

for (const name of live) on(name, refreshSoon);
on("resync", refreshSoon);
on("mcpTaskStatus", (data) => {
  for (const element of document.querySelectorAll(`outlast-task-status[task-id="${CSS.escape(data.taskId)}"]`)) {
    // Two servers may use one id.
    if (element.getAttribute("server") !== data.server || element.getAttribute("source") !== data.source) continue;
    /** @type {import("./task-status.js").OutlastTaskStatus} */ (element).update(data);
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && isMissed) refreshSoon();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) refreshSoon();
});

/** Pauses or continues live updates. */
function togglePause() {
  isPaused = !isPaused;
  if (isPaused && timer !== undefined) {
    clearTimeout(timer);
    timer = undefined;
    isMissed = true;
  }
  const button = document.querySelector('[data-action="pause"]');
  button?.setAttribute("aria-pressed", String(isPaused));
  if (button) button.textContent = isPaused ? "Continue" : "Pause";
  showState();
  if (!isPaused && isMissed) refreshSoon();
}

// ---- the state of the connection ----

const texts = { open: "Live", connecting: "Connecting", broken: "Connection lost", none: "Not live" };
let state = "none";

function showState() {
  const element = document.getElementById("stream");
  const text = document.getElementById("stream-text");
  if (!element || !text) return;
  const shown = state === "open" && isPaused ? "paused" : state;
  element.setAttribute("data-state", shown);
  text.textContent = shown === "paused" ? "Paused" : texts[/** @type {keyof typeof texts} */ (state)];
  document.body.toggleAttribute("data-local-broken", state === "broken");
}

on("state", (next) => {
  state = next;
  showState();
});

// ---- controls ----

document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  const button = target.closest("[data-action]");
  switch (button?.getAttribute("data-action")) {
    case "theme":
      switchTheme();
      break;
    case "keys":
      showKeys();
      break;
    case "pause":
      togglePause();
      break;
    case "show-new":
      refresh({ insertRows: true });
      break;
    case "copy":
      copy(/** @type {Element} */ (button));
      break;
  }
});

function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("outlast-theme", root.dataset.theme);
}

/** Copies `data-copy`, or the text of the element that `data-copy-from` names. @param {Element} button */
async function copy(button) {
  const from = document.getElementById(button.getAttribute("data-copy-from") ?? "");
  const url = button.getAttribute("data-copy-url");
  try {
    let text = button.getAttribute("data-copy") ?? from?.textContent ?? "";
    if (url) text = await (await fetch(url)).text();
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser did not allow to copy", { kind: "error" });
  }
}

// ---- cancel: one operation for all pages ----

document.addEventListener("cancelMcpTask", async (event) => {
  const { server, source, taskId } = /** @type {CustomEvent} */ (event).detail;
  try {
    // A task at a server is described by its element.
    const task =
      source === "" || source === "store"
        ? await request(`/api/v1/tasks/${encodeURIComponent(taskId)}?source=${encodeURIComponent(source)}`)
        : { tool: /** @type {Element} */ (event.target).getAttribute("tool") };
    const isSure = await confirm({
      title: `Cancel ${task.tool ?? "this task"}?`,
      text: `The work at the server ${server} stops, and its result is lost.`,
      detail: task.arguments === undefined ? undefined : JSON.stringify(task.arguments, null, 2),
      yes: "Cancel the task",
    });
    if (!isSure) return;
    await post("/api/v1/tasks/cancel", { server, source, taskId });
    refreshSoon();
  } catch (error) {
    toastError(error);
  }
});

bind("c", () => {
  const status = (activeRow() ?? main).querySelector("outlast-task-status");
  if (status) /** @type {import("./task-status.js").OutlastTaskStatus} */ (status).cancel();
});
bind(".", () => {
  const button = document.getElementById("new-rows");
  if (button && !button.hidden) refresh({ insertRows: true });
});
bind("p", () => {
  if (document.querySelector('[data-action="pause"]')) togglePause();
});

if (!document.body.classList.contains("bare")) {
  // After the modules of the page have added their events.
  addEventListener("load", () => start());
}

export { base, post, request, toast, toastError };
