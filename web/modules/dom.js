// Elements. Text of a document only ever becomes textContent.

// Creates an element. Attributes: `class`, `text`, `on` (listeners), `style` (properties), `data`;
// true and false add and leave out an attribute; everything else is set as an attribute.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class")
      element.className = value;
    else if (name === "text")
      element.textContent = value;
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value))
        element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    } else if (name === "data")
      Object.assign(element.dataset, value);
    else
      element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child))
      append(element, child);
    else
      element.append(child);
  }
}

const svgNamespace = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text")
      element.textContent = value;
    else
      element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

// A piece or word of the document, kept apart from the direction of the text around it.
export function textSpan(text, className = "") {
  return h("bdi", {class: className, text});
}

// A piece: the mark of a space before it is dimmed.
export function pieceSpan(piece) {
  if (!piece.startsWith("▁") || piece === "▁") return textSpan(piece);
  return h("bdi", {}, h("span", {class: "space-mark", text: "▁"}), piece.slice(1));
}

// Runs `draw` once, when the element comes near the visible part of the page.
export function whenNear(element, draw) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    draw();
  }, {rootMargin: "400px"});
  observer.observe(element);
}

// A canvas for sharp drawing at this size in CSS pixels; returns its context.
export function prepareCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const w = Math.max(1, Math.round(width * ratio));
  const hh = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== hh) {
    canvas.width = w;
    canvas.height = hh;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
