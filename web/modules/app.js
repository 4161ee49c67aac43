// The page: its state, its header and the views.
import {checkpointBar, stopPlaying} from "./checkpoints.js";
import {choice} from "./controls.js";
import {h} from "./dom.js";
import {count, visible, wordText} from "./format.js";
import {readPayload} from "./inspection.js";
import {browserLanguage, language, setLanguage, t} from "./language.js";
import {arithmeticView} from "./view_arithmetic.js";
import {attentionView} from "./view_attention.js";
import {beamView} from "./view_beam.js";
import {normsView} from "./view_norms.js";
import {positionsView} from "./view_positions.js";
import {walkView} from "./view_walk.js";
import {wordsView} from "./view_words.js";

const views =
    [walkView, attentionView, arithmeticView, wordsView, positionsView, normsView, beamView];
const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");

// Settings that stay from visit to visit. A page of a file may have no storage.
const storage = {
  get(name) {
    try {
      return localStorage.getItem(`nunchi.${name}`);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`nunchi.${name}`, value);
    } catch {
      // Not kept.
    }
  },
};

class App {
  constructor(payload) {
    this.payload = payload;
    this.listeners = [];
    this.theme = storage.get("theme") || "system";
    const last = payload.inspections.length - 1;
    this.state = {
      view: "",
      checkpoint: last,
      stack: "",
      part: "",
      layer: 0,
      head: 0,
      unit: "tokens",
      weights: "raw",
      query: 0,
      key: -1,
      stage: 0,
      step: 0,
      dimension: 0,
      positionA: 3,
      positionB: 4,
      positionDimension: 0,
      normToken: 0,
      showDropped: true,
      returnTo: null,
    };
    this.startAtAlignment();
    this.normalize();
  }

  get document() {
    return this.payload.inspections[this.state.checkpoint];
  }

  // Starts where the attention says most: in the layer that aligns best, or in the last layer.
  startAtAlignment() {
    const doc = this.document;
    const cross =
        doc.parts.find((p) => p.part !== "self_attention") || doc.parts[doc.parts.length - 1];
    if (!cross) return;
    const alignment = doc.raw.alignment;
    const layer = alignment && cross.layers.includes(alignment.layer) ?
        alignment.layer :
        cross.layers[cross.layers.length - 1];
    const heads = doc.heads(cross.stack, cross.part, layer);
    const place = {stack: cross.stack, part: cross.part, layer};
    Object.assign(this.state, {...place, head: doc.aligns(place) ? "align" : heads[0]});
  }

  get availableViews() {
    return views.filter((view) => view.available(this));
  }

  // Keeps the state within what the document has.
  normalize() {
    const {state} = this;
    const doc = this.document;
    const available = this.availableViews;
    if (!available.some((view) => view.id === state.view)) {
      state.view = (available.find((view) => view.id === "attention") || available[0]).id;
    }
    const part = doc.findPart(state.stack, state.part) || doc.parts[0];
    if (!part) return;
    Object.assign(state, {stack: part.stack, part: part.part});
    if (!part.layers.includes(state.layer))
      state.layer =
          part.layers[Math.min(Math.max(state.layer, 0), part.layers.length - 1)] ?? part.layers[0];
    const heads = doc.heads(state.stack, state.part, state.layer);
    const exists = state.head === "mean" || (state.head === "align" && doc.aligns(state)) ||
        heads.includes(state.head);
    if (!exists) state.head = heads[0];
  }

  // Changes the state and draws again.
  set(patch) {
    const previous = this.state.view;
    this.follows = "stage" in patch;
    Object.assign(this.state, patch);
    this.normalize();
    this.viewIsNew = this.state.view !== previous;
    if (this.viewIsNew) {
      if (this.state.view !== "arithmetic") this.state.returnTo = null;
      this.announce(t(`view.${this.state.view}`));
    }
    this.render();
  }

  // Points at a query and a key: the pictures follow without a new drawing of the view.
  point(patch) {
    Object.assign(this.state, patch);
    for (const listener of this.listeners) listener();
  }

  onPoint(listener) {
    this.listeners.push(listener);
  }

  announce(text) {
    document.getElementById("live").textContent = text;
  }

  targetText() {
    const doc = this.document;
    const text = doc.raw.text || {};
    return text.target !== undefined ?
        wordText([text.target]) :
        wordText(doc.target.filter((piece) => !/^<\/?s>$/.test(piece)));
  }

  applyTheme() {
    const dark = this.theme === "dark" || (this.theme === "system" && darkQuery.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }

  header() {
    const doc = this.document;
    const {model} = doc;
    const text = doc.raw.text || {};
    const facts = [
      visible(model.name ?? ""), visible(model.family ?? ""),
      Number.isFinite(model.parameters) ? t("parameters.n", {count: count(model.parameters)}) : "",
      layersText(model.layers || {}), model.heads ? t("heads.n", {count: model.heads}) : "",
      model.width ? t("width.n", {count: model.width}) : ""
    ].filter(Boolean);
    const settings = h(
        "div", {class: "settings"}, choice({
          name: t("language"),
          key: "language",
          value: language(),
          choices: [{value: "ko", text: "한국어"}, {value: "en", text: "English"}],
          onChange: (value) => {
            setLanguage(value);
            storage.set("language", value);
            this.set({});
          },
        }),
        choice({
          name: t("theme"),
          key: "theme",
          value: this.theme,
          choices: ["system", "light", "dark"].map((value) => ({value, text: t(`theme.${value}`)})),
          onChange: (value) => {
            this.theme = value;
            storage.set("theme", value);
            this.applyTheme();
            this.set({});
          },
        }));
    const source = text.source !== undefined ? wordText([text.source]) : "";
    const short = (value) => (value.length > 600 ? `${value.slice(0, 600)}…` : value);
    const truncated = ["source", "target"].filter((side) => (doc.raw.truncated || {})[side]);
    return [
      h("div", {class: "title-row"}, h("h1", {text: t("title")}), settings),
      h("p", {class: "facts", text: facts.join(" · ")}),
      h("p", {class: source.length + this.targetText().length > 160 ? "sentence long" : "sentence"},
        source ?
            [h("bdi", {text: short(source)}), h("span", {class: "sentence-arrow", text: " → "})] :
            null,
        h("bdi", {class: "sentence-target", text: short(this.targetText())})),
      ...truncated.map((side) => h("p", {class: "notice", text: t(`truncated.${side}`)})),
      this.payload.checkpoints ? checkpointBar(this) : null
    ];
  }

  tabs() {
    const tabs = h("div", {class: "tabs", role: "tablist", "aria-label": t("views")});
    for (const view of this.availableViews) {
      const chosen = view.id === this.state.view;
      tabs.append(h("button", {
        type: "button",
        role: "tab",
        id: `tab-${view.id}`,
        "aria-selected": String(chosen),
        "aria-controls": "view",
        tabindex: chosen ? "0" : "-1",
        data: {key: `tab.${view.id}`},
        text: t(`view.${view.id}`),
        on: {click: () => this.set({view: view.id})},
      }));
    }
    tabs.addEventListener("keydown", (event) => {
      const items = [...tabs.children];
      const at = items.indexOf(document.activeElement);
      const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1}[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      const next = items[(to + items.length) % items.length];
      next.focus();
      next.click();
    });
    return tabs;
  }

  render() {
    const focused = document.activeElement && document.activeElement.dataset ?
        document.activeElement.dataset.key :
        undefined;
    const scrolls = [...document.querySelectorAll("[data-key]")]
                        .filter((e) => e.scrollTop || e.scrollLeft)
                        .map((e) => [e.dataset.key, e.scrollLeft, e.scrollTop]);
    const pageScroll = window.scrollY;
    this.listeners = [];
    document.title = `${t("title")} · ${visible(this.document.model.name || "Nunchi")}`;
    document.getElementById("skip").textContent = t("skip");
    document.getElementById("header").replaceChildren(...this.header().filter(Boolean));
    document.getElementById("tabs").replaceChildren(this.tabs());
    const view = views.find((candidate) => candidate.id === this.state.view);
    const tab = document.getElementById(`tab-${view.id}`);
    tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 48;
    const panel = document.getElementById("view");
    // The height stays while the content changes, so that the page does not scroll.
    panel.style.minHeight = `${panel.offsetHeight}px`;
    panel.setAttribute("aria-labelledby", `tab-${view.id}`);
    panel.replaceChildren(
        h("h2", {class: "visually-hidden", text: t(`view.${view.id}`)}), view.render(this));
    const byKey = (key) => document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (focused) {
      const target = byKey(focused);
      if (target) target.focus({preventScroll: true});
    }
    requestAnimationFrame(() => {
      panel.style.minHeight = "";
      for (const [key, left, top] of scrolls) {
        const element = byKey(key);
        if (element) element.scrollTo(left, top);
      }
      // Another view starts at its beginning, below the header.
      const top = document.getElementById("header").offsetHeight;
      const scroll = this.viewIsNew ? Math.min(pageScroll, top) : pageScroll;
      if (Math.abs(window.scrollY - scroll) > 1) window.scrollTo(0, scroll);
      const open = this.follows && panel.querySelector(".stage.open");
      if (open) showBox(open);
    });
  }

  start() {
    this.applyTheme();
    darkQuery.addEventListener("change", () => {
      this.applyTheme();
      this.set({});
    });
    document.addEventListener("keydown", (event) => {
      const view = views.find((candidate) => candidate.id === this.state.view);
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || "");
      if (view.onKey && !typing && !event.defaultPrevented) view.onKey(this, event);
    });
    window.addEventListener("pagehide", stopPlaying);
    this.render();
  }
}

function layersText({encoder = 0, decoder = 0}) {
  if (encoder && decoder) return t("layers.n", {encoder, decoder});
  return encoder || decoder ? t("layers.one", {count: encoder || decoder}) : "";
}

// Scrolls to a box that is not wholly in view: its beginning below the bars at the top.
function showBox(box) {
  const {top, bottom} = box.getBoundingClientRect();
  const bars = 124;
  if (top < bars || bottom > window.innerHeight)
    window.scrollBy(
        0, Math.min(top - bars, Math.max(bottom - window.innerHeight + 20, top - bars)));
}

function fail(key) {
  document.getElementById("header").replaceChildren(
      h("h1", {text: t("title")}), h("p", {class: "notice", text: t(key)}));
}

function start() {
  setLanguage(storage.get("language") || browserLanguage());
  let payload = null;
  try {
    payload = readPayload(document.getElementById("payload").textContent);
  } catch {
    fail("unreadable");
    return;
  }
  if (!payload.inspections.length) {
    fail("empty");
    return;
  }
  new App(payload).start();
}

start();
