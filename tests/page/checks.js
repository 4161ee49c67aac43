// Checks of the whole page that the tests run in the browser. Each returns a list of faults.
window.pageChecks = (() => {
  const visible = (element) =>
      element.checkVisibility({visibilityProperty: true, opacityProperty: true}) &&
      element.getClientRects().length > 0 && !element.closest(".visually-hidden, .skip");
  const describe = (element) => `${element.tagName.toLowerCase()}.${element.className} "${
      (element.textContent || "").trim().slice(0, 30)}"`;

  // "rgb(…)" or "color(srgb …)" as [r, g, b, a], 0 to 1.
  const channels = (color) => {
    const numbers = (color.match(/[\d.]+(e-?\d+)?/g) || []).map(Number);
    if (color.startsWith("color(")) return [numbers[0], numbers[1], numbers[2], numbers[3] ?? 1];
    return [numbers[0] / 255, numbers[1] / 255, numbers[2] / 255, numbers[3] ?? 1];
  };
  const over =
      (top, bottom) => [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);
  const backgroundOf = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement)
      layers.unshift(channels(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), [1, 1, 1, 1]);
  };
  const luminance = (color) =>
      color.slice(0, 3)
          .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
          .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  // WCAG AA: 4.5, or 3 for large text.
  const contrast = () => {
    const faults = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || !visible(element) ||
          /^(SCRIPT|STYLE|NOSCRIPT|OPTION|text)$/.test(element.tagName))
        continue;
      if (element.closest(":disabled") || (element.matches(".space-mark") && node.data === "▁"))
        continue;
      const style = getComputedStyle(element);
      const background = backgroundOf(element);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const found = ratio(over(channels(style.color), background), background);
      if (found < (large ? 3 : 4.5)) faults.push(`${found.toFixed(2)} ${describe(element)}`);
    }
    const card =
        channels(getComputedStyle(document.querySelector(".panel, .note-box") || document.body)
                     .backgroundColor);
    for (const text of document.querySelectorAll("svg text")) {
      const found = ratio(channels(getComputedStyle(text).fill), card);
      if (found < 4.5) faults.push(`${found.toFixed(2)} svg text ${text.textContent}`);
    }
    return faults;
  };

  const focusable =
      () => [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex]")]
                .filter((e) => visible(e) && !e.disabled);

  const groups = ["radiogroup", "listbox", "tablist", "group", "region", "application", "img"]
                     .map((role) => `[role="${role}"]`)
                     .join(", ");

  const nameOf = (element) => {
    const by = (element.getAttribute("aria-labelledby") || "")
                   .split(" ")
                   .filter(Boolean)
                   .map((id) => document.getElementById(id)?.textContent || "")
                   .join(" ");
    const label = element.labels && element.labels.length ? element.labels[0].textContent : "";
    const given = by || element.getAttribute("aria-label") || label;
    // The name of a group does not come from its content.
    const content = element.matches(groups) ? "" : element.textContent;
    return (given || content || element.title || "").trim();
  };

  const labels = () => {
    const faults = [];
    for (const element of focusable())
      if (!nameOf(element)) faults.push(`no name: ${describe(element)}`);
    for (const element of document.querySelectorAll(groups)) {
      if (!nameOf(element))
        faults.push(`no name: ${element.getAttribute("role")} ${describe(element)}`);
    }
    for (const canvas of document.querySelectorAll("canvas"))
      if (canvas.getAttribute("aria-hidden") !== "true")
        faults.push("a canvas without a text alternative");
    const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
    ids.filter((id, i) => ids.indexOf(id) !== i)
        .forEach((id) => faults.push(`two elements have the id ${id}`));
    for (const attribute of ["aria-labelledby", "aria-controls", "aria-describedby"]) {
      for (const element of document.querySelectorAll(`[${attribute}]`)) {
        for (const id of element.getAttribute(attribute).split(" "))
          if (!document.getElementById(id)) faults.push(`${attribute} names no element: ${id}`);
      }
    }
    return faults;
  };

  // What a role requires of its children, and that each group has one element in the tab order.
  const roles = () => {
    const faults = [];
    const children = {radiogroup: "radio", listbox: "option", tablist: "tab"};
    for (const [role, child] of Object.entries(children)) {
      for (const group of document.querySelectorAll(`[role="${role}"]`)) {
        const items = [...group.querySelectorAll(`[role="${child}"]`)];
        if (!items.length) faults.push(`${role} without ${child}: ${describe(group)}`);
        if (items.filter((item) => item.tabIndex === 0).length !== 1)
          faults.push(`${role} needs one ${child} in the tab order: ${nameOf(group)}`);
        const state = child === "radio" ? "aria-checked" : "aria-selected";
        if (items.some((item) => !["true", "false"].includes(item.getAttribute(state))))
          faults.push(`${child} without ${state}: ${nameOf(group)}`);
      }
    }
    for (const item of document.querySelectorAll('[role="option"]'))
      if (!item.closest('[role="listbox"]'))
        faults.push(`option outside of a listbox: ${describe(item)}`);
    const levels =
        [...document.querySelectorAll("h1, h2, h3, h4, h5")].map((e) => Number(e.tagName[1]));
    levels.forEach((level, i) => {
      if (i && level > levels[i - 1] + 2)
        faults.push(`a heading of level ${level} follows one of level ${levels[i - 1]}`);
    });
    if (document.querySelectorAll("h1").length !== 1) faults.push("the page needs one h1");
    for (const table of document.querySelectorAll("table"))
      if (!table.querySelector("th[scope]")) faults.push("a table without headers");
    if (!document.documentElement.lang) faults.push("no language");
    if (!document.querySelector("main")) faults.push("no main landmark");
    if (document.querySelector("[tabindex]:not([tabindex='0']):not([tabindex='-1'])"))
      faults.push("a tabindex above 0");
    return faults;
  };

  // Nothing reaches beyond the right edge, but for what scrolls by itself; controls are large
  // enough.
  const layout = () => {
    const faults = [];
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width)
      faults.push(
          `the page is ${document.documentElement.scrollWidth} wide in a window of ${width}`);
    for (const element of focusable()) {
      if (element.closest(".line-head-names")) continue;
      const box = element.getBoundingClientRect();
      if (box.width < 24 || box.height < 23.5) {
        if (!element.matches("summary, input[type=checkbox], .plain"))
          faults.push(`small target ${box.width.toFixed(0)} × ${box.height.toFixed(0)}: ${
              describe(element)}`);
      }
    }
    return faults;
  };

  // Colours that are still changing take their final values first.
  const all = () => document.getAnimations().forEach((animation) => animation.finish()) ||
      ({contrast: contrast(), labels: labels(), roles: roles(), layout: layout()});
  return {all, contrast, labels, roles, layout, visible, describe, nameOf, focusable};
})();
