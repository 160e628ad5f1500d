// Requests: drafts, requests that leave while the viewer types, and the permission for notifications.
// Notifications are in `badges.js`.

import { toast } from "./api.js";
import { draft, forget, keep, restore } from "./drafts.js";

/** @param {HTMLFormElement} form */
function begin(form) {
  const name = form.getAttribute("data-draft") ?? "";
  if (form.hasAttribute("data-local-begun")) return;
  form.setAttribute("data-local-begun", "");
  const pairs = draft(name);
  if (pairs && !form.querySelector('[aria-invalid="true"]')) restore(form, pairs);
  keep(form, name);
  form.addEventListener("submit", () => forget(name));
}

function beginAll() {
  for (const form of document.querySelectorAll("form[data-draft]")) begin(/** @type {HTMLFormElement} */ (form));
}

/** A request that has left while its form is edited says why, and cannot be sent. */
function markLeft() {
  for (const row of document.querySelectorAll("[data-left]")) {
    const card = document.getElementById(`request-${row.getAttribute("data-left")}`);
    if (!card || card.querySelector("[data-local-left]")) continue;
    const notice = document.createElement("p");
    notice.className = "notice warning";
    notice.setAttribute("data-local-left", "");
    notice.setAttribute("role", "alert");
    notice.textContent = `This request no longer waits: ${row.querySelector("[data-why]")?.textContent ?? ""}.`;
    card.querySelector("form")?.before(notice);
    for (const button of card.querySelectorAll("button")) button.disabled = true;
  }
}

beginAll();
markLeft();
document.addEventListener("outlast-refreshed", () => {
  beginAll();
  markLeft();
});

// ---- the permission for notifications of the browser ----

const button = document.getElementById("notify");
const isPossible = "Notification" in self;
if (button && isPossible && Notification.permission === "default") button.hidden = false;
button?.addEventListener("click", async () => {
  const permission = await Notification.requestPermission();
  button.hidden = permission !== "default";
  toast(permission === "granted" ? "This browser notifies you of new requests" : "The browser does not allow notifications");
});
