// The events of the server, through one connection for all tabs of a browser: a browser allows six
// connections to an origin over HTTP/1.1. The tab that holds the lock reads the stream and sends
// each event to the others. When it closes, another tab gets the lock.

import { base, instance } from "./api.js";

/** @typedef {(data: any) => void} Listener */

/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();
/**
 * Events up to which revision of each task this tab has handled, by server, source and id: two servers may use one id.
 * @type {Map<string, number>}
 */
const revisions = new Map();
const channel = "BroadcastChannel" in self ? new BroadcastChannel(`outlast-${instance}`) : undefined;
const silenceLimit = 25_000;
let state = "none";
let isLeader = false;
let lastSign = Date.now();

/**
 * Calls `listener` with the data of each event of that name. `resync` means that events were missed,
 * and `state` that the connection changed.
 * @param {string} name
 * @param {Listener} listener
 */
export function on(name, listener) {
  const set = listeners.get(name) ?? new Set();
  set.add(listener);
  listeners.set(name, set);
}

/** Starts to receive. */
export function start() {
  if (channel) {
    channel.onmessage = ({ data }) => receive(data.name, data.data);
  }
  const name = `outlast-stream-${instance}`;
  if (channel && navigator.locks) {
    setState("connecting");
    // Asks the tab that reads the stream for its state.
    channel.postMessage({ name: "ask", data: {} });
    navigator.locks.request(name, () => new Promise(() => lead()));
  } else {
    lead();
  }
  setInterval(watch, 5_000);
}

/** Reads the stream until this tab closes. */
function lead() {
  isLeader = true;
  /** @type {EventSource} */
  let source;
  const open = () => {
    source = new EventSource(`${base}/api/v1/events`);
    source.addEventListener("hello", () => {
      share("state", { state: "open" });
      // Events between the two connections, or before this tab read the stream, are missing.
      share("resync", {});
    });
    source.onerror = () => {
      share("state", { state: "broken" });
      // The browser connects again, except after a response such as 401 or 503.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 3_000);
    };
    for (const name of ["mcpTaskStatus", "taskRemoved", "resync", ...workspace, ...extra]) {
      source.addEventListener(name, (event) => share(name, JSON.parse(event.data)));
    }
  };
  open();
  const beat = () => share("state", { state: source.readyState === EventSource.OPEN ? "open" : "broken" });
  setInterval(beat, 10_000);
  on("ask", beat);
}

/** Events of the connections of the viewer. */
const workspace = [
  "newPendingSample", "newPendingElicitation", "pendingRemoved", "callChanged", "hostedTasksChanged",
  "connectionChanged", "toolsChanged", "trafficChanged",
];

/** Names of further events. A module adds its own before the page has loaded. @type {string[]} */
export const extra = [];

/**
 * Handles an event here and in the other tabs.
 * @param {string} name
 * @param {any} data
 */
function share(name, data) {
  receive(name, data);
  channel?.postMessage({ name, data });
}

/**
 * @param {string} name
 * @param {any} data
 */
function receive(name, data) {
  if (name === "state") {
    lastSign = Date.now();
    const isOpening = data.state === "open" && state !== "open";
    setState(data.state);
    // Another tab reads the stream: events since this page was rendered are missing.
    if (isOpening && !isLeader) receive("resync", {});
    return;
  }
  if (name === "resync") revisions.clear();
  if (name === "mcpTaskStatus" && isOld(data)) return;
  for (const listener of listeners.get(name) ?? []) listener(data);
}

/**
 * Whether this tab has handled a newer revision of the task. Progress changes no revision.
 * @param {{ server: string, source: string, taskId: string, revision: number }} data
 */
function isOld(data) {
  const key = JSON.stringify([data.server, data.source, data.taskId]);
  const known = revisions.get(key) ?? -1;
  if (data.revision < known) return true;
  revisions.delete(key);
  revisions.set(key, data.revision);
  if (revisions.size > 5_000) revisions.delete(/** @type {string} */ (revisions.keys().next().value));
  return false;
}

/** The tab that reads the stream may be frozen. */
function watch() {
  if (state === "open" && Date.now() - lastSign > silenceLimit) setState("broken");
}

/** @param {string} next */
function setState(next) {
  if (next === state) return;
  state = next;
  for (const listener of listeners.get("state") ?? []) listener(state);
}
