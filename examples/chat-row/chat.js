// Plays the events of one task. A real page receives them from its MCP client.

const element = /** @type {any} */ (document.getElementById("task"));
const answer = /** @type {HTMLElement} */ (document.getElementById("answer"));
let revision = 0;
let step = 0;

/** @param {string} status @param {string} statusMessage @param {number} [progress] */
function update(status, statusMessage, progress) {
  revision += 1;
  element.update({ server: "reports", source: "global", taskId: "t-1", status, statusMessage, progress, total: 5, revision });
}

const timer = setInterval(() => {
  step += 1;
  if (step < 5) return update("working", `page ${step} of 5`, step);
  clearInterval(timer);
  update("completed", "5 pages", 5);
  answer.hidden = false;
  answer.textContent = "The report of May has 5 pages.";
}, 1_000);

// The client would send tasks/cancel, and report the end that the server confirms.
document.addEventListener("cancelMcpTask", () => {
  clearInterval(timer);
  update("cancelled", "cancelled by you");
});
