// Controls that several views use.
import {h, pieceSpan} from "./dom.js";
import {mostListed} from "./inspection.js";
import {t} from "./language.js";

// Moves focus with the arrow keys among the items of a group; only one of them is in the tab order.
export function roving(container, selector, onMove) {
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    let to = at;
    if (event.key === "ArrowRight" || event.key === "ArrowDown")
      to = (at + 1) % items.length;
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp")
      to = (at + items.length - 1) % items.length;
    else if (event.key === "Home")
      to = 0;
    else if (event.key === "End")
      to = items.length - 1;
    else
      return;
    event.preventDefault();
    items[at].tabIndex = -1;
    items[to].tabIndex = 0;
    items[to].focus();
    if (onMove) onMove(items[to]);
  });
}

// A choice of one among a few, as a row of buttons. choices: [{value, text, title}].
export function choice({name, key, choices, value, onChange}) {
  const id = `label-${key}`;
  const group = h("div", {class: "choice", role: "radiogroup", "aria-labelledby": id});
  for (const item of choices) {
    const checked = item.value === value;
    group.append(h("button", {
      type: "button",
      role: "radio",
      "aria-checked": String(checked),
      tabindex: checked ? "0" : "-1",
      title: item.title,
      data: {key: `${key}.${item.value}`, value: String(item.value)},
      text: item.text,
      on: {click: () => onChange(item.value)},
    }));
  }
  if (!choices.some((item) => item.value === value) && group.firstChild)
    group.firstChild.tabIndex = 0;
  roving(group, '[role="radio"]', (element) => {
    const chosen = choices.find((item) => String(item.value) === element.dataset.value);
    onChange(chosen.value);
  });
  return h("div", {class: "control"}, h("span", {class: "control-name", id, text: name}), group);
}

// A choice among many.
export function select({name, key, choices, value, onChange}) {
  const list =
      h("select", {data: {key}, on: {change: () => onChange(choices[list.selectedIndex].value)}});
  for (const item of choices) {
    list.append(
        h("option", {text: item.text, value: String(item.value), selected: item.value === value}));
  }
  return h("label", {class: "control"}, h("span", {class: "control-name", text: name}), list);
}

// The pieces of a text as a list to choose from. Returns {element, update(selected)}.
export function tokenStrip({name, key, texts, selected, onPoint, describe}) {
  const shown = texts.slice(0, mostListed);
  const list =
      h("div",
        {class: "tokens", role: "listbox", "aria-label": name, "aria-orientation": "horizontal"});
  const items = shown.map(
      (text, i) =>
          h("button", {
            type: "button",
            role: "option",
            class: "token",
            tabindex: i === selected ? "0" : "-1",
            "aria-selected": String(i === selected),
            data: {key: `${key}.${i}`},
            "aria-label": describe ? describe(i) : undefined,
            on: {
              click: () => onPoint(i),
              focus: () => onPoint(i),
              pointerenter: (event) => {
                if (event.pointerType === "mouse") onPoint(i);
              }
            },
          },
            pieceSpan(text)));
  list.append(...items);
  if (items.length && !(selected >= 0 && selected < items.length)) items[0].tabIndex = 0;
  roving(list, '[role="option"]');
  const update = (now) => items.forEach((item, i) => {
    item.setAttribute("aria-selected", String(i === now));
    item.tabIndex = i === now || (i === 0 && !(now >= 0 && now < items.length)) ? 0 : -1;
  });
  const more = texts.length > shown.length ?
      h("p", {class: "note", text: t("first.tokens", {count: shown.length, all: texts.length})}) :
      null;
  return {element: h("div", {class: "token-strip"}, list, more), update, items};
}

// A box of the notes: a title in brackets above its lines.
export function noteBox(title, ...children) {
  return h("section", {class: "note-box"}, h("h4", {text: `[${title}]`}), ...children);
}

export function arrowDown(text = "") {
  return h(
      "div", {class: "arrow-down", "aria-hidden": "true"}, "↓", text ? h("span", {text}) : null);
}

// A bar for a share of 1.
export function bar(share, className = "") {
  return h(
      "span", {class: `bar ${className}`, "aria-hidden": "true"},
      h("span", {style: {width: `${(Math.min(Math.max(share, 0), 1) * 100).toFixed(2)}%`}}));
}
