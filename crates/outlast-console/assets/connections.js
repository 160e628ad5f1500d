// The forms of the page: drafts, and a file as the text of the import.

import { draft, forget, keep, restore } from "./drafts.js";

for (const element of document.querySelectorAll("form[data-draft]")) {
  const form = /** @type {HTMLFormElement} */ (element);
  const name = form.getAttribute("data-draft") ?? "";
  const pairs = draft(name);
  if (pairs && !document.getElementById("connection-problem")) restore(form, pairs.filter(([field]) => field !== "headers"));
  keep(form, name);
  form.addEventListener("submit", () => forget(name));
}

for (const label of document.querySelectorAll("[data-local-file]")) label.removeAttribute("hidden");
document.querySelector("[data-fills]")?.addEventListener("change", async (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const target = document.getElementById(input.getAttribute("data-fills") ?? "");
  const file = input.files?.[0];
  if (file && target instanceof HTMLTextAreaElement) {
    target.value = await file.text();
    target.dispatchEvent(new Event("input", { bubbles: true }));
  }
});
