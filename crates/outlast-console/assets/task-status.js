// <outlast-task-status>: the status of one task, for any page. This file needs no other file.
//
//   <script type="module" src="task-status.js"></script>
//   <outlast-task-status server="files" task-id="…" status="working" message="3 of 10"></outlast-task-status>
//
// Attributes: `server`, `source`, `task-id`, `status`, `message`, `progress`, `total`, `revision`,
// `readonly` (no cancel button), `show-server`. The button sends the event `cancelMcpTask`, which
// bubbles, with {server, source, taskId} in `detail`. `update(data)` takes the data of an
// `mcpTaskStatus` event of the console.

/** The words of the statuses that can change. */
const ACTIVE = ["working", "input_required"];

const PATHS = {
  working: ["M8 2a6 6 0 0 1 6 6"],
  input_required: ["M5 3v10", "M11 3v10"],
  completed: ["M14.2 8a6.2 6.2 0 1 1-12.4 0 6.2 6.2 0 0 1 12.4 0z", "m5.2 8.2 2 2 3.7-4.2"],
  failed: ["M14.2 8a6.2 6.2 0 1 1-12.4 0 6.2 6.2 0 0 1 12.4 0z", "m5.7 5.7 4.6 4.6m0-4.6-4.6 4.6"],
  cancelled: ["M14.2 8a6.2 6.2 0 1 1-12.4 0 6.2 6.2 0 0 1 12.4 0z", "M8 4.6v4", "M8 11.2v.1"],
};

const STYLE = `
  :host { display: inline-flex; align-items: center; gap: .45em; font-size: .875rem; line-height: 1.4; max-width: 100%; min-width: 0; vertical-align: middle; }
  svg { width: 16px; height: 16px; flex: none; fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linecap: round; stroke-linejoin: round; }
  :host([status="input_required"]) svg { stroke-width: 3; }
  .word { font-weight: 500; white-space: nowrap; }
  .server, .message { color: var(--muted, #5b6475); }
  .server { white-space: nowrap; }
  .message { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
  :host([wrap]) .message { white-space: normal; overflow-wrap: anywhere; }
  svg { color: var(--status-color); }
  :host([status="working"]) { --status-color: var(--working, #2458c5); }
  :host([status="input_required"]) { --status-color: var(--input, #8f5a00); }
  :host([status="completed"]) { --status-color: var(--completed, #17713f); }
  :host([status="failed"]) { --status-color: var(--failed, #bf2638); }
  :host([status="cancelled"]) { --status-color: var(--cancelled, #5f6b7c); }
  :host([status="working"]) svg { animation: spin 1s linear infinite; }
  progress { width: 5.5em; height: 6px; flex: none; accent-color: var(--working, #2458c5); }
  button { font: inherit; font-size: .8125rem; color: var(--failed, #bf2638); background: none; border: 0; border-radius: 6px; padding: .1em .5em; margin-left: .25em; cursor: pointer; flex: none; }
  button:hover { background: color-mix(in srgb, currentColor 12%, transparent); }
  button:focus-visible { outline: 2px solid currentColor; outline-offset: 1px; }
  button:disabled { opacity: .55; cursor: default; }
  [hidden] { display: none; }
  @keyframes spin { to { transform: rotate(360deg); } }
  @media (prefers-reduced-motion: reduce) { :host([status="working"]) svg { animation: none; } }
`;

/** The word for people: "Input Required". @param {string} status */
export function statusWord(status) {
  return status.split("_").map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ");
}

export class OutlastTaskStatus extends HTMLElement {
  static observedAttributes = [
    "status", "message", "progress", "total", "readonly", "server", "show-server", "tool",
  ];

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const make = (/** @type {string} */ name, /** @type {string} */ part) => {
      const element = document.createElement(name);
      element.className = part;
      element.setAttribute("part", part);
      root.append(element);
      return element;
    };
    this.icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.icon.setAttribute("viewBox", "0 0 16 16");
    this.icon.setAttribute("aria-hidden", "true");
    root.append(this.icon);
    this.serverName = make("span", "server");
    this.word = make("span", "word");
    this.text = make("span", "message");
    this.bar = /** @type {HTMLProgressElement} */ (make("progress", "progress"));
    this.button = /** @type {HTMLButtonElement} */ (make("button", "cancel"));
    this.button.type = "button";
    this.button.textContent = "Cancel";
    this.button.addEventListener("click", (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.cancel();
    });
    this.word.setAttribute("aria-live", "polite");
    /** The status whose icon is drawn. @type {string | undefined} */
    this.shown = undefined;
  }

  connectedCallback() {
    this.render();
  }

  attributeChangedCallback() {
    if (this.isConnected) this.render();
  }

  /** Sends `cancelMcpTask`. */
  cancel() {
    if (this.button.hidden) return;
    const detail = {
      server: this.getAttribute("server") ?? "",
      source: this.getAttribute("source") ?? "",
      taskId: this.getAttribute("task-id") ?? "",
    };
    this.dispatchEvent(new CustomEvent("cancelMcpTask", { detail, bubbles: true, composed: true }));
  }

  /**
   * Shows the data of an event of this task. An older revision is dropped.
   * @param {{ status: string, statusMessage?: string, displayMessage?: string, progress?: number, total?: number, revision?: number }} data
   */
  update(data) {
    const known = Number(this.getAttribute("revision") ?? -1);
    if (data.revision !== undefined && data.revision < known) return;
    const set = (/** @type {string} */ name, /** @type {unknown} */ value) => {
      if (value === undefined || value === null) this.removeAttribute(name);
      else if (this.getAttribute(name) !== String(value)) this.setAttribute(name, String(value));
    };
    set("revision", data.revision);
    set("status", data.status);
    set("message", data.displayMessage ?? data.statusMessage);
    set("progress", data.progress);
    set("total", data.total);
  }

  render() {
    const status = this.getAttribute("status") ?? "";
    const isActive = ACTIVE.includes(status);
    if (this.shown !== status) {
      this.shown = status;
      const paths = PATHS[/** @type {keyof typeof PATHS} */ (status)] ?? [];
      this.icon.replaceChildren(
        ...paths.map((d) => {
          const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
          path.setAttribute("d", d);
          return path;
        }),
      );
      this.word.textContent = statusWord(status);
    }
    const message = this.getAttribute("message") ?? "";
    this.text.textContent = message ? `— ${message}` : "";
    this.text.hidden = !message;
    this.text.title = message;
    const server = this.getAttribute("server") ?? "";
    this.serverName.textContent = server;
    this.serverName.hidden = !this.hasAttribute("show-server") || !server;
    const total = this.getAttribute("total");
    this.bar.hidden = !isActive || !this.hasAttribute("progress") || total === null;
    if (!this.bar.hidden) {
      this.bar.max = Number(total) || 1;
      this.bar.value = Number(this.getAttribute("progress"));
      this.bar.setAttribute("aria-label", "Progress");
    }
    this.button.hidden = !isActive || this.hasAttribute("readonly");
    const tool = this.getAttribute("tool") ?? "task";
    this.button.setAttribute("aria-label", `Cancel ${tool}`);
  }
}

if (!customElements.get("outlast-task-status")) {
  customElements.define("outlast-task-status", OutlastTaskStatus);
}
