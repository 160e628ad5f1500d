// The tree of a JSON value: children are loaded when they are opened.

/** @param {string} url */
async function load(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the console answered ${response.status}`);
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  return [...parsed.body.children].map((element) => document.importNode(element, true));
}

document.addEventListener(
  "toggle",
  async (event) => {
    const details = /** @type {HTMLDetailsElement} */ (event.target);
    const url = details.getAttribute?.("data-tree");
    if (!url || !details.open || details.hasAttribute("data-local-loaded")) return;
    details.setAttribute("data-local-loaded", "");
    const placeholder = details.querySelector(":scope > .tree-loading");
    try {
      placeholder?.replaceWith(...(await load(url)));
    } catch (error) {
      details.removeAttribute("data-local-loaded");
      if (placeholder) placeholder.textContent = `Cannot load: ${error instanceof Error ? error.message : error}`;
    }
  },
  true,
);

document.addEventListener("click", async (event) => {
  const button = /** @type {Element} */ (event.target).closest("[data-tree-next]");
  const list = button?.closest("ul");
  if (!button || !list) return;
  const [more] = await load(button.getAttribute("data-tree-next") ?? "");
  button.closest("li")?.remove();
  list.append(...(more?.children ?? []));
});
