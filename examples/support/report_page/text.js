// Elements and numbers. Texts of runs become text nodes and attributes alone, never markup.
const svgns = "http://www.w3.org/2000/svg";
function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const child of [].concat(children === undefined ? [] : children)) node.append(child);
  return node;
}
const html = (tag, attributes, children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, children) => put(document.createElementNS(svgns, tag), attributes, children);

const isNumber = x => typeof x === "number" && Number.isFinite(x);
/// Four significant digits, with an exponent only where decimals would not help.
function short(x) {
  if (!isNumber(x)) return "none";
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return x.toExponential(2);
  return size >= 1000 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(4)));
}
const units = {
  bytes: x => x >= 2 ** 30 ? short(x / 2 ** 30) + " GiB" : x >= 2 ** 20 ? short(x / 2 ** 20) + " MiB" : x >= 1024 ? short(x / 1024) + " KiB" : short(x) + " B",
  seconds: x => x >= 3600 ? short(x / 3600) + " h" : x >= 60 ? short(x / 60) + " min" : short(x) + " s",
  usec: x => x >= 1e6 ? short(x / 1e6) + " s" : x >= 1000 ? short(x / 1000) + " ms" : short(x) + " µs",
  milliseconds: x => short(x) + " ms",
  plain: short,
};
function median(values) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b), n = sorted.length;
  return n === 0 ? null : n % 2 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}
/// Multiples of 1, 2 or 5 times a power of `base` in [low, high].
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted, decade = 10 ** Math.floor(Math.log10(raw));
  const step = decade * (raw / decade <= 1 ? 1 : raw / decade <= 2 ? 2 : raw / decade <= 5 ? 5 : 10), out = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= high / step + 1e-9; ++i) out.push(i * step);
  return out;
}
function tickText(x, all) {
  const step = all.length > 1 ? all[1] - all[0] : Math.abs(x) || 1, size = Math.max(...all.map(Math.abs));
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return x === 0 ? "0" : String(Number(x.toPrecision(3)).toExponential()).replace("e+", "e");
  const [unit, letter] = size >= 2e6 ? [1e6, "M"] : size >= 2e4 ? [1e3, "k"] : [1, ""];
  return (x / unit).toFixed(Math.max(0, Math.min(6, -Math.floor(Math.log10(step / unit) + 1e-9)))) + (x === 0 ? "" : letter);
}

// A run keeps its colour, its dashes and its mark everywhere, so that runs differ without colour, too.
const dashes = ["", "7 4", "2 3", "10 3 2 3", "5 2", "1 4", "12 4", "4 4 1 4"];
const colour = run => "var(--run" + run % 8 + ")";
function mark(shape, x, y, attributes) {
  const d = ["M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", "M-3 -3h6v6h-6z", "M0 -4l4 7h-8z", "M0 -4.5l4 4.5l-4 4.5l-4 -4.5z"][shape % 4];
  return svg("path", {d, transform: "translate(" + x + " " + y + ")", ...attributes});
}
function key(run, marked) {
  const box = svg("svg", {class: "key", viewBox: "0 0 34 12", "aria-hidden": "true"});
  box.append(svg("line", {x1: 1, x2: 33, y1: 6, y2: 6, stroke: colour(run), "stroke-width": 2.2, "stroke-dasharray": dashes[run % 8]}));
  if (marked) box.append(mark(run, 17, 6, {fill: "var(--paper)", stroke: colour(run), "stroke-width": 1.6}));
  return box;
}
/// Rows of a table, made when it is opened: a page of a long run stays quick.
function figures(title, head, rows) {
  const box = html("details", {}, html("summary", {}, title));
  const fill = () => {
    if (box.childElementCount > 1) return;
    const cell = (tag, x) => html(tag, isNumber(x) ? {class: "number", "data-value": String(x)} : {}, isNumber(x) ? String(x) : x === null || x === undefined ? "" : x);
    const body = rows().map(row => html("tr", {}, row.map(x => cell("td", x))));
    box.append(html("div", {class: "scroll", tabindex: 0}, html("table", {}, [html("thead", {}, html("tr", {}, head.map(x => cell("th", x)))), html("tbody", {}, body)])));
  };
  box.addEventListener("toggle", fill);
  if (location.hash === "#figures") box.open = true, fill();
  return box;
}
// Pictures are drawn for the width that they have, so that their letters keep their size.
const drawn = [];
function draws(draw) {
  drawn.push(draw);
  return draw;
}
