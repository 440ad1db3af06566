// Makes one tree of the page like another one, and touches only what differs: focus, selection, open details and scroll positions stay.

export function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.isEqualNode(to)) return;
  attributes(from, to);
  children(from, to);
}

function attributes(from, to) {
  for (const { name } of [...from.attributes]) {
    // What a person has opened stays open.
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS")) from.removeAttribute(name);
  }
  for (const { name, value } of [...to.attributes]) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
}

function children(from, to) {
  const known = new Map();
  for (const child of from.children) if (child.id) known.set(child.id, child);
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const same = wanted.id ? known.get(wanted.id) : undefined;
    if (same) {
      if (same === at) at = at.nextSibling;
      else from.insertBefore(same, at);
      morph(same, wanted);
    } else if (at && !wanted.id && !at.id && at.nodeName === wanted.nodeName) {
      const next = at.nextSibling;
      morph(at, wanted);
      at = next;
    } else {
      from.insertBefore(wanted, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
