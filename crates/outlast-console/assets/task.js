// The page of one task: run again, delete with undo. Its input requests are in `requests.js`.

import { base, confirm, post, toastError } from "./api.js";
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
