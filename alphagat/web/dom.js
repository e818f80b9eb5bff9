// Helpers for the DOM.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

/** Makes an SVG element with attributes and children. */
export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Makes an HTML element with properties and children. */
export function html(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Replaces the children of `root`. The keyboard focus stays at the button or input with the same number, or in `root`. */
export function refill(root, children) {
  const focusable = () => [...root.querySelectorAll("button, input")];
  const { activeElement } = document, hadFocus = root.contains(activeElement);
  const number = Math.max(0, focusable().indexOf(activeElement));
  root.replaceChildren(...children);
  if (!hadFocus) return;
  root.tabIndex = -1;
  (focusable()[number] ?? focusable().at(-1) ?? root).focus({ preventScroll: true });
}

/** Fills `root` with one radio button per `[value, label, title]`, and calls `choose(value)` on a change. */
export function segments(root, options, chosen, choose) {
  refill(root, options.map(([value, label, title]) => {
    const input = html("input", { type: "radio", name: root.id, checked: value === chosen });
    input.addEventListener("change", () => choose(value));
    return html("label", { title: title || "" }, input, html("span", {}, label));
  }));
}

export function download(name, text, type) {
  const link = html("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const percent = (share) => `${Math.round(100 * share)}%`;
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns a text colour with good contrast on a background such as #e8590c. */
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.3 * red + 0.59 * green + 0.11 * blue > 160 ? "#22252a" : "#ffffff";
}
