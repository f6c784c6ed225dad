// The sections of the page.
const runs = JSON.parse(document.getElementById("data").textContent).runs.map((run, i) => {
  const of = kind => run.lines.filter(e => e.event === kind), last = list => list.length ? list[list.length - 1] : null;
  const steps = of("step"), evals = of("eval");
  return {...run, i, steps, evals, begin: last(of("run")), arena: last(of("arena")), kernels: last(of("kernels")), done: last(of("done")), mesh: last(of("mesh")),
          predicted: last(run.lines.filter(e => e.event !== "step" && isNumber(e.predicted_ms)))};
});
const page = document.getElementById("page"), several = runs.length > 1;
const named = (run, what) => several ? run.name + (what ? ", " + what : "") : what || run.name;
const section = (title, about, children) => page.append(html("section", {}, [html("h2", {}, title), ...(about ? [html("p", {}, about)] : []), ...children]));
const curve = (field, what, more = {}) => runs.map(r => ({run: r.i, name: named(r, what), points: r.steps.map(e => [e.step, e[field]]), ...more}));

page.replaceChildren(html("h1", {}, several ? runs.length + " training runs" : runs[0].begin && runs[0].begin.title || runs[0].name),
  html("ul", {class: "runs"}, runs.map(r => {
    const parts = [several && r.begin && r.begin.title, r.mesh && r.mesh.devices + " devices", r.left_out && r.left_out + " lines left out"].filter(Boolean);
    return html("li", {}, [key(r.i, r.evals.length > 0), html("span", {}, r.name + (parts.length ? ": " + parts.join(", ") : ""))]);
  })));
if (!several) document.title = page.firstChild.textContent;

const tile = (id, title, unit, value, note) => {
  const lines = runs.map(r => [r, value(r)]).filter(([, x]) => isNumber(x));
  if (lines.length === 0) return [];
  return [html("div", {class: several ? "tile many" : "tile", "data-figure": id}, [html("h3", {}, title), ...lines.map(([r, x]) => {
    const more = note && note(r);
    return html("div", {"data-run": r.i, "data-value": String(x)}, [...(several ? [key(r.i)] : []), html("span", {}, units[unit](x)), ...(more ? [html("small", {}, more)] : [])]);
  })])];
};
const lastLoss = r => r.steps.length ? r.steps[r.steps.length - 1].loss : null;
const bestLoss = r => r.done && isNumber(r.done.best_val_loss) ? r.done.best_val_loss : r.evals.map(e => e.val_loss).filter(isNumber).reduce((a, b) => a === null || b < a ? b : a, null);
const measured = r => median(r.steps.map(e => e.ms));
const predictedOf = r => r.predicted ? r.predicted.predicted_ms : median(r.steps.map(e => e.predicted_ms));
page.append(html("div", {class: "tiles"}, [
  ...tile("loss", "Loss of the last step", "plain", lastLoss),
  ...tile("best", "Best validation loss", "plain", bestLoss),
  ...tile("steps", "Steps", "plain", r => r.done ? r.done.steps : r.steps.length ? r.steps[r.steps.length - 1].step : null, r => r.done ? "" : "not ended"),
  ...tile("ms", "Time of a step, median", "milliseconds", measured),
  ...tile("predicted", "Predicted time of a step", "milliseconds", predictedOf,
          r => isNumber(measured(r)) && predictedOf(r) > 0 ? short(measured(r) / predictedOf(r)) + " × measured" : ""),
  ...tile("tokens", "Tokens per second, median", "plain", r => median(r.steps.map(e => e.tokens_per_s))),
  ...tile("seconds", "Time of the run", "seconds", r => r.done && r.done.seconds),
  ...tile("planned", "Memory planned", "bytes", r => r.done && r.done.planned_bytes, r => r.mesh ? "of rank 0" : ""),
  ...tile("measured", "Memory measured", "bytes", r => r.done && r.done.measured_bytes, r => r.mesh ? "of rank 0" : ""),
]));

const flat = (value, r) => r.steps.map(e => [e.step, value]);
section("Training", "", [html("div", {class: "charts"}, [
  chart({id: "loss", title: "Loss", wide: true, series: [...curve("loss", "training", {faint: true}),
    ...runs.filter(r => r.evals.length).map(r => ({run: several ? r.i : 1, name: named(r, "validation"), points: r.evals.map(e => [e.step, e.val_loss]), marks: true, dash: several ? "1 3" : "7 4"}))],
    unit: several ? "validation is marked" : "solid: training; dashed and marked: validation"}),
  chart({id: "norm", title: "Gradient norm", unit: "before clipping", series: curve("grad_norm", "norm", {faint: true}), robust: true}),
  chart({id: "lr", title: "Learning rate", series: curve("lr", "rate"), unit: ""}),
  chart({id: "tokens", title: "Throughput", unit: "tokens per second", series: curve("tokens_per_s", "tokens/s", {faint: true})}),
  chart({id: "ms", title: "Time of a step", unit: runs.some(r => isNumber(predictedOf(r))) ? "ms; dotted: predicted" : "ms", robust: true, series: [...curve("ms", "measured", {faint: true}),
    ...runs.filter(r => isNumber(predictedOf(r))).map(r => ({run: several ? r.i : 1, name: named(r, "predicted"), dash: "2 3",
      points: r.steps.some(e => isNumber(e.predicted_ms)) ? r.steps.map(e => [e.step, e.predicted_ms]) : flat(r.predicted.predicted_ms, r)}))]}),
])]);

const byRun = (title, about, field, draw) => {
  if (!runs.some(r => r[field])) return;
  section(title, about, runs.filter(r => r[field]).map(r => html("div", {class: "by-run"}, [...(several ? [html("ul", {class: "runs"}, html("li", {}, [key(r.i), html("span", {}, r.name)]))] : []), ...draw(r)])));
};
const ofRank = text => runs.some(r => r.mesh) ? text : "";
byRun("Where the time of a step goes", "Each launch was timed alone, one after the other." +
      ofRank(" Of several devices these are the launches of rank 0, and what they exchange includes the wait for the other ranks."), "kernels", r => [flame(r.i, r.kernels)]);
byRun("Memory", "Parameters, gradients and the state of the optimizer keep their place; temporaries share theirs." + ofRank(" Of several devices this is the memory of rank 0."),
      "arena", r => [memory(r.i, r.arena, r.done), arena(r.i, r.arena)]);

const settings = runs.map(r => new Map((r.begin ? r.begin.settings : []).map(s => [s.key, s])));
const keys = [...new Set(settings.flatMap(s => [...s.keys()]))];
if (keys.length) {
  const differs = k => several && new Set(settings.map(s => s.has(k) ? s.get(k).value : "")).size > 1;
  const isSet = k => settings.some(s => s.has(k) && s.get(k).origin !== "default");
  const table = (id, list) => html("div", {class: "scroll"}, html("table", {"data-table": id}, [
    html("thead", {}, html("tr", {}, ["setting", ...runs.map(r => several ? r.name : "value"), ...(several ? [] : ["set by"])].map(x => html("th", {}, x)))),
    html("tbody", {}, list.map(k => html("tr", {"data-key": k}, [html("td", {}, (differs(k) ? "≠ " : "") + k), ...settings.flatMap(s => {
      const found = s.get(k), from = found ? found.origin : "", value = found ? found.value : "";
      const cell = html("td", from && from !== "default" ? {class: "set"} : {}, value);
      if (several && from) cell.append(html("small", {}, from));
      return several ? [cell] : [cell, html("td", {}, from)];
    })])))]));
  const chosen = keys.filter(k => isSet(k) || differs(k)), rest = keys.filter(k => !chosen.includes(k));
  section("Settings", "What a layer set, and which one: a named size, a file, a variable, a flag or a checkpoint." + (several ? " Lines with ≠ differ between the runs." : ""),
          [...(chosen.length ? [table("chosen", chosen)] : []),
           html("details", location.hash === "#figures" ? {open: ""} : {}, [html("summary", {}, "Settings that have their defaults: " + rest.length), table("defaults", rest)])]);
}

const redraw = () => drawn.forEach(draw => draw());
redraw();
let width = page.clientWidth;
addEventListener("resize", () => {
  if (page.clientWidth !== width) width = page.clientWidth, redraw();
});
