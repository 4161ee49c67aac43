// Names of places in the model, and the controls that choose one.
import {choice, select} from "./controls.js";
import {hasText, t} from "./language.js";

export function partName(stack, part) {
  const key = `part.${stack}.${part}`;
  return hasText(key) ? t(key) : `${stack} ${part}`;
}

export function layerName(layer) {
  return t("layer.n", {n: layer + 1});
}

export function headName(head) {
  return typeof head === "number" ? t("head.n", {n: head + 1}) : t(`head.${head}`);
}

export function kindName(name) {
  const key = `kind.${name}`;
  return hasText(key) ? t(key) : name;
}

export function placeName(place) {
  return [partName(place.stack, place.part), layerName(place.layer), headName(place.head)].join(
      " · ");
}

// The place of the state; its parts exist in the document.
export function currentPlace(app) {
  const {stack, part, layer, head} = app.state;
  return {stack, part, layer, head};
}

// Controls for part and layer, and for the head if one is given.
export function placeControls(app, chosenHead) {
  const {document: doc, state} = app;
  const parts = doc.parts;
  const found = doc.findPart(state.stack, state.part);
  const controls = [];
  if (parts.length > 1) {
    controls.push(choice({
      name: t("attention"),
      key: "part",
      value: `${state.stack}/${state.part}`,
      choices: parts.map((p) => ({value: `${p.stack}/${p.part}`, text: partName(p.stack, p.part)})),
      onChange: (value) => {
        const [stack, part] = value.split("/");
        app.set({stack, part});
      },
    }));
  }
  if (found && found.layers.length > 1) {
    const choices = found.layers.map(
        (layer) => ({value: layer, text: String(layer + 1), title: layerName(layer)}));
    const make = choices.length > 12 ? select : choice;
    controls.push(make({
      name: t("layer"),
      key: "layer",
      value: state.layer,
      choices,
      onChange: (layer) => app.set({layer})
    }));
  }
  if (chosenHead !== undefined) {
    const heads = doc.heads(state.stack, state.part, state.layer);
    if (heads.length > 1) {
      const choices =
          heads.map((head) => ({value: head, text: String(head + 1), title: headName(head)}));
      const make = choices.length > 17 ? select : choice;
      controls.push(make({
        name: t("head"),
        key: "head",
        value: chosenHead,
        choices,
        onChange: (head) => app.set({head})
      }));
    }
  }
  return controls;
}

export function unitControl(app) {
  if (!app.document.hasWords) return null;
  return choice({
    name: t("unit"),
    key: "unit",
    value: app.state.unit,
    choices: [
      {value: "tokens", text: t("tokens")},
      {value: "words", text: t("words"), title: t("words.how")}
    ],
    onChange: (unit) => app.set({unit, query: -1, key: -1}),
  });
}
