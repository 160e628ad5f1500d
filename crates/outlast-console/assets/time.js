// Elapsed times and countdowns, which tick here without requests.
//
// `<time data-since="MS">` shows the time since then, `<time data-until="MS">` the time until then,
// both in milliseconds since 1970. The clock of the server counts: `data-now` of <main>.

const main = document.getElementById("main");
let offset = 0;

/** Reads the clock of the server. @param {Element | null} root */
export function synchronise(root) {
  const now = Number(root?.getAttribute("data-now"));
  if (now > 0) offset = now - Date.now();
}

/** The time of the server in milliseconds. */
export function now() {
  return Date.now() + offset;
}

/**
 * The same text as the server renders.
 * @param {number} ms
 */
export function duration(ms) {
  const time = Math.max(0, Math.floor(ms));
  const seconds = Math.floor(time / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (time < 10_000) return `${seconds}.${Math.floor((time % 1_000) / 100)} s`;
  if (minutes === 0) return `${seconds} s`;
  if (hours === 0) return `${minutes} min ${seconds % 60} s`;
  if (days === 0) return `${hours} h ${minutes % 60} min`;
  return `${days} d ${hours % 24} h`;
}

/** Shows the current times. */
export function tick() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("time[data-since], time[data-until]")) {
    const since = element.getAttribute("data-since");
    const until = Number(element.getAttribute("data-until"));
    const ms = since === null ? until - now() : now() - Number(since);
    const text = ms < 0 && since === null ? "expired" : wholeSeconds(ms);
    if (element.textContent !== text) element.textContent = text;
    if (since === null) {
      const total = Number(element.getAttribute("data-total"));
      const isShort = ms < Math.min(60_000, total > 0 ? total / 4 : 60_000);
      element.toggleAttribute("data-local-soon", isShort);
    }
  }
}

/** A text that changes once a second, so that the page is calm. @param {number} ms */
function wholeSeconds(ms) {
  return ms < 60_000 ? `${Math.floor(Math.max(0, ms) / 1_000)} s` : duration(ms);
}

synchronise(main);
tick();
setInterval(tick, 1_000);
