// How many requests wait, in the navigation and in the title. Notifications of the browser, on every page.

import { base, request } from "./api.js";
import { on } from "./stream.js";

const badge = document.querySelector('[data-badge="requests"]');
const title = document.title;
/** @type {number | undefined} */
let timer;

function refreshSoon() {
  clearTimeout(timer);
  timer = setTimeout(refresh, 300);
}

async function refresh() {
  if (!badge) return;
  let counts;
  try {
    counts = await request("/api/v1/requests/summary");
  } catch {
    return;
  }
  const count = counts.sampling + counts.elicitations;
  badge.textContent = String(count);
  badge.toggleAttribute("hidden", count === 0);
  badge.setAttribute("aria-label", `${count} waiting`);
  document.title = count > 0 ? `(${count}) ${title}` : title;
}

if (badge) {
  for (const name of ["newPendingSample", "newPendingElicitation", "pendingRemoved", "resync"]) on(name, refreshSoon);
  // A task in the store asks by its status.
  on("mcpTaskStatus", (data) => {
    if (data.source === "store") refreshSoon();
  });
  refreshSoon();
}

// ---- notifications of the browser ----

/** Whether the browser has notifications and the viewer has allowed them. */
const isAllowed = () => "Notification" in self && Notification.permission === "granted";

/**
 * Shows a notification while no person looks at this page. Tabs that show the same one replace it.
 * @param {string} text
 * @param {string} tag
 */
function notify(text, tag) {
  if (!isAllowed() || !document.hidden) return;
  const notification = new Notification("Outlast", { body: text, tag });
  notification.onclick = () => {
    focus();
    location.assign(`${base}/requests`);
  };
}

on("newPendingSample", ({ id }) => notify("A server asks for a response of a model.", `request-${id}`));
on("newPendingElicitation", ({ id }) => notify("A server asks you something.", `request-${id}`));
/** The tasks that were reported, each once until it continues. @type {Set<string>} */
const waiting = new Set();
on("mcpTaskStatus", ({ source, server, taskId, tool, status }) => {
  if (source !== "store") return;
  if (status !== "input_required") {
    waiting.delete(taskId);
  } else if (!waiting.has(taskId)) {
    waiting.add(taskId);
    notify(`${tool ?? "A task"} at ${server} waits for your input.`, `task-${taskId}`);
  }
});
