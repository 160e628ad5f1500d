// The page of one task: run again, delete with undo, answer.

import { base, confirm, post, toast, toastError } from "./api.js";
import { refreshSoon } from "./console.js";
import "./tree.js";

document.addEventListener("click", (event) => {
  const button = /** @type {Element} */ (event.target).closest("[data-task-action]");
  const actions = /** @type {HTMLElement | null} */ (button?.closest("#task-actions") ?? null);
  if (!(button instanceof HTMLButtonElement) || !actions) return;
  const action = button.getAttribute("data-task-action") === "rerun" ? rerun : remove;
  button.disabled = true;
  action(actions.dataset)
    .catch(toastError)
    .finally(() => (button.disabled = false));
});

/** @param {DOMStringMap} task */
async function rerun(task) {
  const isRepeatable = task.repeatable === "true";
  const isSure =
    isRepeatable ||
    (await confirm({
      title: `Run ${task.tool} again?`,
      text: "The tool does not declare that it only reads or is idempotent: it may have its effect twice.",
      yes: "Run again",
    }));
  if (!isSure) return;
  const { taskId } = await post("/api/v1/tasks/rerun", { taskId: task.task, confirmed: true });
  location.assign(`${base}/tasks/${taskId}`);
}

/** @param {DOMStringMap} task */
async function remove(task) {
  await post("/api/v1/tasks/delete", { taskId: task.task });
  sessionStorage.setItem("outlast-deleted", JSON.stringify([task.task]));
  location.assign(`${base}/tasks`);
}

// ---- input responses ----

for (const field of document.querySelectorAll("[data-draft]")) restore(field);
document.addEventListener("outlast-refreshed", () => {
  for (const field of document.querySelectorAll("[data-draft]")) restore(field);
});

/** A draft survives a reload. @param {Element} element */
function restore(element) {
  const field = /** @type {HTMLTextAreaElement} */ (element);
  if (field.hasAttribute("data-local-restored")) return;
  field.setAttribute("data-local-restored", "");
  const draft = sessionStorage.getItem(`draft-${field.dataset.draft}`);
  if (draft !== null) {
    field.value = draft;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

document.addEventListener("input", (event) => {
  const field = /** @type {HTMLTextAreaElement} */ (event.target);
  if (field.dataset?.draft) sessionStorage.setItem(`draft-${field.dataset.draft}`, field.value);
});

document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.dataset.answer) return;
  event.preventDefault();
  const action = /** @type {HTMLButtonElement} */ (event.submitter)?.value ?? "accept";
  const field = form.querySelector("textarea");
  const problem = /** @type {HTMLElement} */ (form.querySelector(".problem"));
  problem.hidden = true;
  /** @type {Record<string, unknown>} */
  const result = { action };
  if (action === "accept" && field) {
    try {
      result.content = JSON.parse(field.value);
    } catch (error) {
      problem.textContent = `This is not JSON: ${error instanceof Error ? error.message : error}`;
      problem.hidden = false;
      field.focus();
      return;
    }
  }
  try {
    await post("/api/v1/tasks/answer", { taskId: form.dataset.task, key: form.dataset.answer, result });
    if (field?.dataset.draft) sessionStorage.removeItem(`draft-${field.dataset.draft}`);
    form.reset();
    form.closest("section")?.remove();
    toast(action === "accept" ? "Answered" : action === "decline" ? "Declined" : "Dismissed");
    refreshSoon();
  } catch (error) {
    toastError(error);
  }
});
