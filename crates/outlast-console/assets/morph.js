// Changes the page into a newer rendering of the same page, by the smallest changes.
//
// An element with the focus or a selection, an open <details> and an edited form are never replaced.
// An indicator is never replaced by an older revision of its task.
// Attributes that start with `data-local` belong to scripts and are not changed.

/** Forms that the viewer has edited. @type {WeakSet<Element>} */
const edited = new WeakSet();

document.addEventListener("input", (event) => {
  const form = /** @type {Element} */ (event.target).closest("form");
  if (form) edited.add(form);
});
for (const name of ["submit", "reset"]) {
  document.addEventListener(name, (event) => edited.delete(/** @type {Element} */ (event.target)));
}

/**
 * @param {Element} current
 * @param {Element} next
 * @param {{ insertRows?: boolean }} [options] without `insertRows`, rows of `[data-rows]` are changed,
 *   but none is added or removed
 * @returns {number} how many rows were not added
 */
export function morph(current, next, options = {}) {
  const context = { insertRows: options.insertRows ?? true, skipped: 0 };
  morphElement(current, next, context);
  return context.skipped;
}

/**
 * @typedef {{ insertRows: boolean, skipped: number }} Context
 * @param {Element} current
 * @param {Element} next
 * @param {Context} context
 */
function morphElement(current, next, context) {
  if (current.hasAttribute("data-keep") || edited.has(current)) return;
  if (current.isEqualNode(next) || isNewer(current, next)) return;
  morphAttributes(current, next);
  if (isEditing(current)) return;
  if (current instanceof HTMLTemplateElement) return;
  morphChildren(current, next, context);
}

/**
 * Whether the page shows a newer revision than the rendering: an event can be faster than a page.
 * @param {Element} current
 * @param {Element} next
 */
function isNewer(current, next) {
  if (current.tagName !== "OUTLAST-TASK-STATUS" || current.getAttribute("task-id") !== next.getAttribute("task-id")) return false;
  const revision = (/** @type {Element} */ element) => Number(element.getAttribute("revision") ?? -1);
  const progress = (/** @type {Element} */ element) => Number(element.getAttribute("progress") ?? -1);
  return revision(current) > revision(next) || (revision(current) === revision(next) && progress(current) > progress(next));
}

/** Whether the viewer types into the element. @param {Element} element */
function isEditing(element) {
  return element === document.activeElement && element.matches("input, textarea, select, [contenteditable]");
}

/**
 * @param {Element} current
 * @param {Element} next
 */
function morphAttributes(current, next) {
  for (const { name } of [...current.attributes]) {
    if (!next.hasAttribute(name) && !isLocal(current, name)) current.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (!isLocal(current, name) && current.getAttribute(name) !== value) current.setAttribute(name, value);
  }
}

/**
 * @param {Element} element
 * @param {string} name
 */
function isLocal(element, name) {
  return name.startsWith("data-local") || (name === "open" && /^(DETAILS|DIALOG)$/.test(element.tagName));
}

/**
 * @param {Element} parent
 * @param {Element} next
 * @param {Context} context
 */
function morphChildren(parent, next, context) {
  const keepsRows = !context.insertRows && parent.hasAttribute("data-rows");
  /** @type {Map<string, Element>} */
  const keyed = new Map();
  for (const child of parent.children) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
  }
  let cursor = parent.firstChild;
  const skip = () => {
    cursor = cursor?.nextSibling ?? null;
  };
  for (const wanted of [...next.childNodes]) {
    const key = wanted instanceof Element ? keyOf(wanted) : undefined;
    if (key) {
      const found = keyed.get(key);
      if (found) {
        keyed.delete(key);
        if (keepsRows) {
          morphElement(found, /** @type {Element} */ (wanted), context);
          continue;
        }
        // Rows that are gone, between the cursor and the wanted one.
        while (cursor && cursor !== found && !isWanted(cursor, keyed)) remove(cursor, skip, (n) => (cursor = n));
        if (cursor === found) skip();
        else move(parent, found, cursor);
        morphElement(found, /** @type {Element} */ (wanted), context);
      } else if (keepsRows) {
        context.skipped += 1;
      } else {
        parent.insertBefore(document.importNode(wanted, true), cursor);
      }
      continue;
    }
    if (keepsRows) continue;
    if (cursor && matches(cursor, wanted)) {
      const matched = cursor;
      skip();
      if (matched instanceof Element) morphElement(matched, /** @type {Element} */ (wanted), context);
      else if (matched.nodeValue !== wanted.nodeValue && !isSelected(matched)) matched.nodeValue = wanted.nodeValue;
    } else {
      parent.insertBefore(document.importNode(wanted, true), cursor);
    }
  }
  if (keepsRows) return;
  while (cursor) remove(cursor, skip, (node) => (cursor = node));
  for (const left of keyed.values()) if (left.parentNode === parent && !isInUse(left)) left.remove();
}

/** @param {Element} element */
function keyOf(element) {
  return element.getAttribute("data-key") ?? (element.id || undefined);
}

/**
 * @param {Node} node
 * @param {Map<string, Element>} keyed
 */
function isWanted(node, keyed) {
  if (!(node instanceof Element)) return false;
  const key = keyOf(node);
  return key !== undefined && keyed.get(key) === node;
}

/**
 * @param {Node} current
 * @param {Node} wanted
 */
function matches(current, wanted) {
  if (current.nodeType !== wanted.nodeType) return false;
  if (!(current instanceof Element)) return true;
  return current.tagName === /** @type {Element} */ (wanted).tagName && !keyOf(current);
}

/**
 * Removes a node, unless the viewer uses it.
 * @param {Node} node
 * @param {() => void} skip
 * @param {(next: ChildNode | null) => void} setCursor
 */
function remove(node, skip, setCursor) {
  if (isInUse(node)) return skip();
  const following = node.nextSibling;
  /** @type {ChildNode} */ (node).remove();
  setCursor(following);
}

/**
 * Moves an element and retains its focus where the browser can.
 * @param {Element} parent
 * @param {Element} element
 * @param {ChildNode | null} before
 */
function move(parent, element, before) {
  if (element.contains(document.activeElement) || isSelected(element)) return;
  parent.insertBefore(element, before);
}

/** @param {Node} node */
function isInUse(node) {
  if (node.contains(document.activeElement) || isSelected(node)) return true;
  if (!(node instanceof Element)) return false;
  return (
    node.matches("details[open]") ||
    node.querySelector("details[open]") !== null ||
    [...(node.matches("form") ? [node] : node.querySelectorAll("form"))].some((form) => edited.has(form))
  );
}

/** Whether a part of the node is selected. @param {Node} node */
function isSelected(node) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(node, true);
}
