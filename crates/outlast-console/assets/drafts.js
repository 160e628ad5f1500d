// What was typed survives a reload: it is kept in the storage of the tab until the form is sent.

/** @param {string} name */
const key = (name) => `outlast-draft:${location.pathname}:${name}`;

/** The fields of a form that a person fills in. @param {HTMLFormElement} form */
export function typedPairs(form) {
  const hidden = new Set(["csrf", "key"]);
  return [...new FormData(form)].filter(([name, value]) => !hidden.has(name) && typeof value === "string");
}

/**
 * Keeps what is typed.
 * @param {HTMLFormElement} form
 * @param {string} name
 */
export function keep(form, name) {
  /** @type {number | undefined} */
  let timer;
  const save = () => {
    clearTimeout(timer);
    timer = undefined;
    try {
      sessionStorage.setItem(key(name), JSON.stringify(typedPairs(form)));
    } catch {
      // Without storage, a draft ends with the page.
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(save, 200);
  });
  form.addEventListener("change", save);
  addEventListener("pagehide", () => {
    if (timer !== undefined) save();
  });
}

/**
 * The draft of a form, if there is one.
 * @param {string} name
 * @returns {[string, string][] | undefined}
 */
export function draft(name) {
  try {
    const text = sessionStorage.getItem(key(name));
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} name */
export function forget(name) {
  try {
    sessionStorage.removeItem(key(name));
  } catch {
    // The browser keeps no drafts.
  }
}

/**
 * Writes a draft into the controls of a form.
 * @param {HTMLFormElement} form
 * @param {[string, string][]} pairs
 */
export function restore(form, pairs) {
  /** @type {Map<string, string[]>} */
  const texts = new Map();
  for (const [name, text] of pairs) texts.set(name, [...(texts.get(name) ?? []), text]);
  for (const control of form.elements) {
    if (control instanceof HTMLInputElement && ["checkbox", "radio"].includes(control.type)) {
      control.checked = texts.get(control.name)?.includes(control.value) ?? false;
    } else if (
      (control instanceof HTMLInputElement && control.type !== "hidden" && control.type !== "file") ||
      control instanceof HTMLTextAreaElement ||
      control instanceof HTMLSelectElement
    ) {
      const text = texts.get(control.name)?.[0];
      if (text !== undefined) control.value = text;
    }
  }
}
