// A message loads its body when it is opened.

import { base, toastError } from "./api.js";

document.addEventListener(
  "toggle",
  async (event) => {
    const details = /** @type {HTMLDetailsElement} */ (event.target);
    const number = details.getAttribute("data-message");
    if (!number || !details.open || details.hasAttribute("data-local-loaded")) return;
    details.setAttribute("data-local-loaded", "");
    try {
      const response = await fetch(`${base}/traffic/${number}`);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const next = page.getElementById("message") ?? page.querySelector(".error-page");
      const body = details.querySelector(".m-body");
      if (!next || !body) return;
      const imported = document.importNode(next, true);
      imported.removeAttribute("id");
      // The refresh of the page keeps what was loaded.
      body.setAttribute("data-keep", "");
      body.replaceChildren(imported);
    } catch (error) {
      details.removeAttribute("data-local-loaded");
      toastError(error);
    }
  },
  true,
);
