// The whole way from text to text, one box after another, as the notes draw it.
import {arrowDown, roving, tokenStrip} from "./controls.js";
import {h} from "./dom.js";
import {hasText, t} from "./language.js";
import {sideOfStack} from "./view_norms.js";
import {stageContent} from "./walk_content.js";
import {segmentsOf, stagePlace, stageTitle} from "./walk_stages.js";

// The stage of the state among all stages.
function locate(segments, at) {
  const all =
      segments.flatMap((segment, s) => segment.stages.map((stage) => ({stage, segment: s})));
  const index = Math.min(Math.max(at, 0), all.length - 1);
  return {all, index};
}

function about(stage) {
  const special = `walk.${stage.id}.${stage.part}`;
  const own = `walk.${stage.id}`;
  return hasText(special) ? t(special) : hasText(own) ? t(own) : "";
}

function segmentMap(app, segments, all, current) {
  const list = h("div", {class: "segments", role: "radiogroup", "aria-label": t("segments")});
  segments.forEach((segment, s) => {
    const first = all.findIndex((entry) => entry.segment === s);
    if (s) list.append(h("span", {class: "segment-arrow", "aria-hidden": "true", text: "→"}));
    list.append(h("button", {
      type: "button",
      role: "radio",
      "aria-checked": String(s === current),
      tabindex: s === current ? "0" : "-1",
      data: {key: `segment.${s}`},
      text: segment.name,
      on: {click: () => app.set({stage: first})},
    }));
  });
  roving(list, '[role="radio"]', (element) => element.click());
  return list;
}

export const walkView = {
  id: "walk",
  available: () => true,
  render(app) {
    const {document: doc, state} = app;
    const segments = segmentsOf(doc);
    const {all, index} = locate(segments, state.stage);
    const current = all[index];
    const go = (to) => app.set({stage: Math.min(Math.max(to, 0), all.length - 1)});
    const button = (key, text, to, disabled) => h("button", {
      type: "button",
      class: "step-button",
      data: {key},
      disabled,
      text,
      on: {click: () => go(to)}
    });
    const bar =
        h("div", {class: "walk-bar"},
          button("walk.previous", `← ${t("previous")}`, index - 1, index === 0),
          h("output", {class: "walk-count figure", "aria-live": "polite"},
            t("stage.of", {n: index + 1, all: all.length}),
            h("span", {class: "visually-hidden", text: `: ${stageTitle(current.stage)}`})),
          button("walk.next", `${t("next")} →`, index + 1, index === all.length - 1));

    const {stack, part} = current.stage;
    let picker = null;
    if (stack && !["tokens", "ids"].includes(current.stage.id)) {
      const side =
          part && part !== "feed_forward" ? doc.axes(stack, part).queries : sideOfStack(doc, stack);
      picker = tokenStrip({
        name: t("walk.word"),
        key: "walk.token",
        texts: side.pieces,
        selected: Math.max(state.query, 0),
        onPoint: (query) => {
          if (query !== app.state.query) app.point({query});
        },
      });
      app.onPoint(() => picker.update(app.state.query));
    }

    const chain = h("div", {class: "chain"});
    let lastPlace = "";
    all.forEach((entry, i) => {
      if (entry.segment !== current.segment) return;
      const place = stagePlace(entry.stage);
      if (place !== lastPlace)
        chain.append(h("p", {class: "chain-place", text: place || segments[entry.segment].name}));
      else if (chain.childElementCount)
        chain.append(arrowDown());
      lastPlace = place;
      const open = i === index;
      const box =
          h("section", {class: `note-box stage${open ? " open" : ""}`},
            h("h4", {}, h("button", {
                type: "button",
                class: "stage-title",
                "aria-expanded": String(open),
                data: {key: `stage.${i}`},
                text: `[${stageTitle(entry.stage)}]`,
                on: {click: () => go(i)},
              })));
      if (open) {
        box.append(
            h("p", {class: "note", text: about(entry.stage)}),
            picker ? h("div", {class: "pick"},
                       h("span", {class: "control-name", text: t("walk.word")}), picker.element) :
                     "",
            ...stageContent(app, entry.stage).filter(Boolean));
      }
      chain.append(box);
    });
    return h(
        "div", {class: "view-walk"}, h("p", {class: "lead", text: t("about.walk")}),
        segments.length > 1 ? segmentMap(app, segments, all, current.segment) : null, bar, chain);
  },
  // Keys of the whole view.
  onKey(app, event) {
    const {all, index} = locate(segmentsOf(app.document), app.state.stage);
    const step = {n: 1, p: -1}[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    app.set({stage: Math.min(Math.max(index + step, 0), all.length - 1)});
  },
};
