// Requests of the page's scripts.

/** The path under which the console is mounted. */
export const base = document.documentElement.dataset.base ?? "";

/** Tells two consoles on one host apart. */
export const instance = document.documentElement.dataset.instance ?? "";

/** An error that the console returned. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string | undefined} next what to do next
   */
  constructor(status, message, next) {
    super(message);
    this.status = status;
    this.next = next;
  }
}

/**
 * @param {string} path below the base
 * @param {RequestInit} [init]
 * @returns {Promise<any>} the JSON of the response
 */
export async function request(path, init = {}) {
  let response;
  try {
    response = await fetch(base + path, { ...init, headers: { accept: "application/json", ...init.headers } });
  } catch {
    throw new ApiError(0, "the console cannot be reached", "check that the gateway runs");
  }
  const text = await response.text();
  /** @type {any} */
  let body = {};
  try {
    body = text ? JSON.parse(text) : {};
  } catch {
    // The status says enough.
  }
  if (!response.ok) {
    const error = body.error ?? {};
    throw new ApiError(response.status, error.message ?? `the console answered ${response.status}`, error.next);
  }
  return body;
}

/**
 * Sends a change.
 * @param {string} path below the base
 * @param {unknown} [body]
 */
export function post(path, body = {}) {
  const csrf = document.querySelector('meta[name="csrf"]')?.getAttribute("content") ?? "";
  return request(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-outlast-csrf": csrf },
    body: JSON.stringify(body),
  });
}

/**
 * Shows a message at the edge of the page.
 * @param {string} text
 * @param {{ kind?: "info" | "error", action?: string, onAction?: () => void, seconds?: number }} [options]
 */
export function toast(text, options = {}) {
  const toasts = document.getElementById("toasts");
  if (!toasts) return;
  const element = document.createElement("div");
  element.className = `toast ${options.kind ?? "info"}`;
  const message = document.createElement("span");
  message.textContent = text;
  element.append(message);
  if (options.action) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button ghost small";
    button.textContent = options.action;
    button.addEventListener("click", () => {
      element.remove();
      options.onAction?.();
    });
    element.append(button);
  }
  toasts.append(element);
  while (toasts.children.length > 4) toasts.firstElementChild?.remove();
  setTimeout(() => element.remove(), (options.seconds ?? (options.kind === "error" ? 10 : 5)) * 1000);
}

/** @param {unknown} error */
export function toastError(error) {
  const next = error instanceof ApiError && error.next ? `: ${error.next}` : "";
  toast(`${error instanceof Error ? error.message : error}${next}`, { kind: "error" });
}

/**
 * Asks before a change.
 * @param {{ title: string, text: string, detail?: string, yes: string }} question
 * @returns {Promise<boolean>}
 */
export function confirm(question) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("confirm-dialog"));
  const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(`confirm-${id}`));
  part("title").textContent = question.title;
  part("text").textContent = question.text;
  part("detail").textContent = question.detail ?? "";
  part("detail").hidden = !question.detail;
  part("yes").textContent = question.yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
