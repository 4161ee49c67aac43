// The stages of the walk, in the order of the notes. A stage exists if the document has its values.
import {t} from "./language.js";
import {partName} from "./place.js";

const subLayers = {
  encoder: ["self_attention", "feed_forward"],
  decoder: ["self_attention", "cross_attention", "feed_forward"]
};

// The segments of the flow: [{name, stages: [{id, stack, layer, part}]}].
export function segmentsOf(doc) {
  const segments = [];
  const add = (name, stages) => {
    if (stages.length) segments.push({name, stages});
  };
  const stacks = stacksOf(doc);
  for (const stack of stacks) {
    add(t(stacks.length > 1 ? `segment.input.${stack}` : "segment.input"), inputStages(doc, stack));
    const layers = layersOf(doc, stack);
    for (const layer of layers) {
      add(`${t(`stack.${stack}`)} ${layer + 1}`, layerStages(doc, stack, layer));
    }
    if (doc.tensor("stack_output", stack))
      segments[segments.length - 1].stages.push({id: "stack_output", stack});
  }
  if (doc.steps.length) {
    add(t("segment.output"),
        [{id: "logits"}, ...(doc.task === "fill" ? [] : [{id: "output_text"}])]);
  }
  return segments;
}

function stacksOf(doc) {
  const found = new Set();
  for (const p of doc.parts) found.add(p.stack);
  for (const entry of doc.raw.tensors || []) found.add(entry.stack);
  const stacks = ["encoder", "decoder"].filter((stack) => found.has(stack));
  if (stacks.length) return stacks;
  return [doc.source.length ? "encoder" : "decoder"];
}

function inputStages(doc, stack) {
  const stages = [{id: "tokens", stack}];
  const isSource = stack === "encoder" && doc.source.length;
  const ids = doc.sides[isSource ? "source" : "input"].ids;
  if (ids.length) stages.push({id: "ids", stack});
  if (doc.tensor("token_embedding", stack)) stages.push({id: "token_embedding", stack});
  if (doc.tensor("position", stack)) stages.push({id: "position", stack});
  // Without rows of positions, the sum is the embedding itself.
  if (doc.tensor("embedding", stack) &&
      (doc.tensor("position", stack) || !doc.tensor("token_embedding", stack)))
    stages.push({id: "embedding", stack});
  return stages;
}

function layersOf(doc, stack) {
  const layers = new Set();
  for (const p of doc.parts)
    if (p.stack === stack) p.layers.forEach((layer) => layers.add(layer));
  for (const entry of doc.raw.tensors || [])
    if (entry.stack === stack && entry.layer >= 0) layers.add(entry.layer);
  return [...layers].sort((a, b) => a - b);
}

function layerStages(doc, stack, layer) {
  const stages = [];
  const parts =
      [...new Set([
        ...subLayers[stack] || [], ...doc.parts.filter((p) => p.stack === stack).map((p) => p.part)
      ])].sort((a, b) => (a === "feed_forward") - (b === "feed_forward"));
  for (const part of parts) {
    const push = (id) => stages.push({id, stack, layer, part});
    const normIsFirst = doc.model.norm === "pre";
    const hasNorm = doc.tensor("norm_output", stack, layer, part);
    const hasSum = doc.tensor("residual_sum", stack, layer, part);
    if (normIsFirst && hasNorm) push("norm");
    if (part === "feed_forward") {
      if (doc.tensor("feed_forward_hidden", stack, layer, part) ||
          doc.tensor("feed_forward", stack, layer, part))
        push("feed_forward");
    } else {
      attentionStages(doc, stack, layer, part, push);
    }
    if (normIsFirst && hasSum) push("add");
    if (!normIsFirst && (hasSum || hasNorm)) push("add_norm");
  }
  return stages;
}

function attentionStages(doc, stack, layer, part, push) {
  const [head] = doc.heads(stack, part, layer);
  if (head === undefined) return;
  const a = doc.arithmetic({stack, layer, part, head});
  if (a) {
    push("qkv");
    push("scores");
    if (a.isScaled) push("scaled");
    if (doc.isCausal(stack, part)) push("mask");
  }
  push("softmax");
  if (a && a.value) push("context");
  if (doc.joinedTensor("attention_context", stack, layer, part)) push("heads");
  if (doc.tensor("attention_output", stack, layer, part)) push("projection");
}

// "Self-attention · …" for a stage of a layer.
export function stageTitle(stage) {
  return t(`stage.${stage.id}`);
}

export function stagePlace(stage) {
  if (!stage.part) return "";
  return stage.part === "feed_forward" ? t("sub.feed_forward") : partName(stage.stack, stage.part);
}
