// How many requests wait, in the navigation and in the title.

import { request } from "./api.js";
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
