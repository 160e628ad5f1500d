// The form of a tool: it stays as it is while calls run. The server renders every change of its
// structure; a call adds an entry below it.

import { toast, toastError } from "./api.js";
import { draft, forget, keep, restore, typedPairs } from "./drafts.js";
import { morph } from "./morph.js";

const draftName = location.search;

/** @returns {HTMLFormElement | null} */
const callForm = () => /** @type {HTMLFormElement | null} */ (document.getElementById("call-form"));

/**
 * Sends the form and returns the page of the response.
 * @param {HTMLFormElement} form
 * @param {[string, string][]} pairs
 */
async function send(form, pairs) {
  const csrf = document.querySelector('meta[name="csrf"]')?.getAttribute("content") ?? "";
  const response = await fetch(form.action, {
    method: "POST",
    headers: { "x-outlast-csrf": csrf, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(pairs).toString(),
  });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return { response, page };
}

/** Replaces the form by another rendering of it. @param {Document} page */
function replaceForm(page) {
  const current = callForm();
  const next = page.getElementById("call-form");
  if (!current || !next) return;
  const name = /** @type {HTMLInputElement | null} */ (document.activeElement)?.name;
  const imported = /** @type {HTMLFormElement} */ (document.importNode(next, true));
  current.replaceWith(imported);
  begin(imported);
  const wrong = imported.querySelector('[aria-invalid="true"]');
  const same = name ? [...imported.elements].find((control) => /** @type {HTMLInputElement} */ (control).name === name) : undefined;
  const target = wrong ?? same;
  if (target instanceof HTMLElement) target.focus();
}

/** @param {SubmitEvent} event */
async function submit(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const submitter = /** @type {HTMLButtonElement | null} */ (event.submitter);
  const op = submitter?.value || "run";
  /** @type {[string, string][]} */
  const pairs = [...new FormData(form)].filter(([, value]) => typeof value === "string").map(([name, value]) => [name, String(value)]);
  pairs.push(["op", op]);
  try {
    const { response, page } = await send(form, pairs);
    if (response.ok && response.redirected) {
      // The next click is another call.
      const key = /** @type {HTMLInputElement | null} */ (page.querySelector('#call-form [name="key"]'))?.value;
      const field = /** @type {HTMLInputElement | null} */ (form.querySelector('[name="key"]'));
      if (key && field) field.value = key;
      form.querySelector("#call-faults")?.remove();
      for (const control of form.querySelectorAll('[aria-invalid="true"]')) control.removeAttribute("aria-invalid");
      for (const problem of form.querySelectorAll(".problem")) problem.remove();
      const [current, next] = [document.getElementById("calls"), page.getElementById("calls")];
      if (current && next) morph(current, next);
      toast("The call was sent");
      return;
    }
    if (page.getElementById("call-form")) {
      if (op === "reset") forget(draftName);
      replaceForm(page);
      const next = callForm();
      if (next && op !== "reset") next.dispatchEvent(new Event("change"));
      return;
    }
    const message = page.querySelector(".error-page h1")?.textContent ?? `the console answered ${response.status}`;
    toast(message, { kind: "error" });
  } catch {
    toast("The console cannot be reached; nothing was sent", { kind: "error" });
  }
}

/** @param {HTMLFormElement} form */
function begin(form) {
  form.setAttribute("data-local-begun", "");
  form.addEventListener("submit", submit);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      /** @type {HTMLElement | null} */ (form.querySelector("#run"))?.click();
    }
  });
  form.addEventListener("input", (event) => {
    // Typing into an optional group uses the group.
    const target = /** @type {Element} */ (event.target);
    for (let group = target.closest("fieldset.part"); group; group = group.parentElement?.closest("fieldset.part") ?? null) {
      const box = /** @type {HTMLInputElement | null} */ (group.querySelector(":scope > legend [data-include]"));
      if (box && box !== target) box.checked = true;
    }
    const invalid = target.closest('[aria-invalid="true"]');
    invalid?.removeAttribute("aria-invalid");
  });
  keep(form, draftName);
}

async function restoreDraft() {
  const form = callForm();
  const pairs = draft(draftName);
  if (!form || !pairs) return;
  const current = JSON.stringify(typedPairs(form));
  if (current === JSON.stringify(pairs)) return;
  const isFaulty = document.getElementById("call-faults") !== null;
  if (isFaulty) return;
  const identity = new Set(["server", "source", "tool", "csrf", "key"]);
  /** @type {[string, string][]} */
  const sent = pairs.filter(([name]) => !identity.has(name));
  for (const name of identity) {
    const field = /** @type {HTMLInputElement | null} */ (form.querySelector(`[name="${name}"]`));
    if (field) sent.push([name, field.value]);
  }
  try {
    const { page } = await send(form, [...sent, ["op", "draft"]]);
    replaceForm(page);
  } catch (error) {
    restore(form, pairs);
    toastError(error);
  }
}

function beginNew() {
  const form = callForm();
  if (!form || form.hasAttribute("data-local-begun")) return;
  begin(form);
  restoreDraft();
}

beginNew();
// A server that was connected later brings its form with it.
document.addEventListener("outlast-refreshed", beginNew);

// The search filters while it is typed.
const search = document.getElementById("tool-search");
search?.addEventListener("input", () => {
  const words = /** @type {HTMLInputElement} */ (search).value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const item of document.querySelectorAll("#tool-items > li")) {
    const text = item.textContent?.toLowerCase() ?? "";
    item.toggleAttribute("data-local-hidden", !words.every((word) => text.includes(word)));
  }
});
