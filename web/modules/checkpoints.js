// A slider over the checkpoints of a run: the same sentence while the model learns.
import {lineChart} from "./charts.js";
import {h} from "./dom.js";
import {number} from "./format.js";
import {t} from "./language.js";

let timer = 0;

export function stopPlaying() {
  clearInterval(timer);
  timer = 0;
}

export function checkpointBar(app) {
  const {checkpoints} = app.payload;
  const at = app.state.checkpoint;
  const one = checkpoints[at];
  const metric = one.metric ? `${one.metric.name} ${number(one.metric.score, 1)}` : "";
  const text = [
    t("checkpoint.step", {step: one.step ?? one.name}),
    Number.isFinite(one.loss) ? `${t("loss")} ${number(one.loss, 3)}` : "", metric
  ].filter(Boolean).join(" · ");
  const slider = h("input", {
    type: "range",
    min: "0",
    max: String(checkpoints.length - 1),
    step: "1",
    value: String(at),
    "aria-label": t("checkpoint"),
    "aria-valuetext": text,
    data: {key: "checkpoint"},
    on: {input: () => app.set({checkpoint: Number(slider.value)})},
  });
  const playing = timer !== 0;
  const play = h("button", {
    type: "button",
    class: "play",
    data: {key: "play"},
    "aria-pressed": String(playing),
    text: playing ? `❚❚ ${t("pause")}` : `▶ ${t("play")}`,
    on: {
      click: () => {
        if (timer) {
          stopPlaying();
          app.set({});
          return;
        }
        timer = setInterval(() => {
          const next = app.state.checkpoint + 1;
          if (next >= checkpoints.length) stopPlaying();
          app.set(next < checkpoints.length ? {checkpoint: next} : {});
        }, 700);
        app.set({checkpoint: at === checkpoints.length - 1 ? 0 : at});
      }
    },
  });
  const losses = checkpoints.map((c) => (Number.isFinite(c.loss) ? c.loss : NaN));
  const chart = losses.some(Number.isFinite) ? lineChart({
    name: t("loss.curve"),
    height: 130,
    xs: checkpoints.map((c, i) => c.step ?? i),
    marker: at,
    digits: 2,
    xName: t("step"),
    series: [{name: "", className: "s1", values: losses}],
    onPick: (checkpoint) => app.set({checkpoint}),
  }) :
                                               null;
  return h(
      "section", {class: "panel checkpoints", "aria-label": t("checkpoint")},
      h("div", {class: "checkpoint-row"}, play, slider, h("output", {class: "figure", text})),
      chart,
      h("p", {class: "written"}, h("span", {class: "aside", text: `${t("checkpoint.writes")} `}),
        h("bdi", {text: app.targetText()})));
}
