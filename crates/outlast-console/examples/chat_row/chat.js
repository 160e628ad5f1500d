// One row for each tool call: the element shows the status, and this script connects it to the API.

import "./task-status.js";

const rows = /** @type {HTMLElement} */ (document.getElementById("rows"));

document.getElementById("ask")?.addEventListener("click", async () => {
  const response = await fetch("render", { method: "POST" });
  const row = document.createElement("li");
  const status = document.createElement("outlast-task-status");
  status.setAttribute("task-id", await response.text());
  status.setAttribute("status", "working");
  status.setAttribute("source", "store");
  status.setAttribute("tool", "render");
  row.append("render: ", status);
  rows.append(row);
});

const events = new EventSource("console/api/v1/events");
events.addEventListener("mcpTaskStatus", (event) => {
  const data = JSON.parse(event.data);
  const element = rows.querySelector(`[task-id="${CSS.escape(data.taskId)}"]`);
  /** @type {import("./task-status.js").OutlastTaskStatus | null} */ (element)?.update(data);
});

rows.addEventListener("cancelMcpTask", async (event) => {
  const page = await (await fetch("console/tasks")).text();
  const parsed = new DOMParser().parseFromString(page, "text/html");
  const csrf = parsed.querySelector('meta[name="csrf"]')?.getAttribute("content") ?? "";
  await fetch("console/api/v1/tasks/cancel", {
    method: "POST",
    headers: { "content-type": "application/json", "x-outlast-csrf": csrf },
    body: JSON.stringify(/** @type {CustomEvent} */ (event).detail),
  });
});
