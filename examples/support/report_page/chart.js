// A line chart over steps. series: {run, name, points: [[step, value]...], marks, faint, dash}; points that are no numbers are left out.
function chart({id, title, unit, series, wide, robust, label = short}) {
  series = series.map(s => ({...s, all: s.points, points: s.points.filter(p => isNumber(p[0]) && isNumber(p[1]))})).filter(s => s.all.length > 0);
  const picture = svg("svg", {role: "img", tabindex: 0, "aria-label": title + " over steps; the arrow keys read values"});
  const note = html("span", {}, unit ? " " + unit : ""), readout = html("div", {class: "readout", "aria-live": "polite"});
  const steps = () => [...new Set(series.flatMap(s => s.all.map(p => p[0])))].sort((a, b) => a - b);
  const rows = () => {
    const columns = series.map(s => new Map(s.all));
    return steps().map(step => [step, ...columns.map(c => c.has(step) ? c.get(step) : "")].map(x => x === null ? "null" : x));
  };
  const box = html("figure", {class: wide ? "wide" : "", "data-chart": id},
                   [html("figcaption", {}, [title, note]), picture, readout, figures("Figures", ["step", ...series.map(s => s.name)], rows)]);
  let scale = null;
  const draw = draws(() => {
    const width = Math.max(280, picture.clientWidth || box.clientWidth || 560), height = wide ? Math.min(360, width * 0.62) : Math.min(230, width * 0.62);
    picture.replaceChildren();
    put(picture, {viewBox: "0 0 " + width + " " + height, height});
    const all = series.flatMap(s => s.points);
    if (all.length === 0) return void picture.append(svg("text", {x: 8, y: 24}, "no finite value was recorded"));
    let low = Infinity, high = -Infinity, first = Infinity, last = -Infinity;
    for (const [x, y] of all) low = Math.min(low, y), high = Math.max(high, y), first = Math.min(first, x), last = Math.max(last, x);
    // A first step that takes a hundred times as long would flatten all others.
    let above = 0;
    if (robust && all.length >= 20) {
      const sorted = all.map(p => p[1]).sort((a, b) => a - b), most = sorted[Math.floor(0.97 * (sorted.length - 1))] * 1.6;
      if (high > most && most > low) above = sorted.filter(y => y > most).length, high = most;
    }
    note.textContent = (unit ? " " + unit : "") + (above ? "; " + above + (above === 1 ? " value" : " values") + " above the edge" : "");
    if (last === first) last = first + 1;
    const margin = high > low ? (high - low) * 0.06 : Math.abs(high) * 0.05 || 0.5;
    const bottom = low >= 0 && low - margin < 0 ? 0 : low - margin;
    high += margin, low = bottom;
    const ys = ticks(low, high, Math.max(3, height / 50)), xs = ticks(first, last, Math.max(2, width / 110)).filter(x => Number.isInteger(x));
    const texts = ys.map(y => tickText(y, ys)), left = 14 + 7 * Math.max(...texts.map(t => t.length)), right = width - 12, top = 10, base = height - 34;
    const px = x => left + (x - first) / (last - first) * (right - left), py = y => Math.max(top - 4, base - (y - low) / (high - low) * (base - top));
    ys.forEach((y, i) => picture.append(svg("line", {class: "grid", x1: left, x2: right, y1: py(y), y2: py(y)}),
                                        svg("text", {x: left - 6, y: py(y) + 4, "text-anchor": "end"}, texts[i])));
    for (const x of xs)
      picture.append(svg("line", {class: "axis", x1: px(x), x2: px(x), y1: base, y2: base + 4}),
                     svg("text", {x: px(x), y: base + 17, "text-anchor": px(x) > right - 18 ? "end" : "middle"}, tickText(x, xs)));
    picture.append(svg("line", {class: "axis", x1: left, x2: right, y1: base, y2: base}),
                   svg("text", {x: (left + right) / 2, y: height - 3, "text-anchor": "middle"}, "step"));
    for (const s of series) {
      const stroke = colour(s.run), dash = s.dash || dashes[s.run % 8];
      const path = (points, attributes) => picture.append(svg("path", {fill: "none", stroke, "stroke-linejoin": "round", ...attributes,
        d: points.map(([x, y], i) => (i ? "L" : "M") + px(x).toFixed(1) + " " + py(y).toFixed(1)).join("")}));
      const plain = above ? s.points.filter(p => p[1] <= high) : s.points;
      if (s.faint && s.points.length > 120) {
        path(thin(s.points, right - left), {"stroke-width": 1, opacity: 0.3});
        path(means(plain, 100), {"stroke-width": 2, "stroke-dasharray": dash, class: "series"});
      } else {
        path(thin(s.points, right - left), {"stroke-width": 1.8, "stroke-dasharray": dash, class: "series"});
      }
      if (s.marks && s.points.length <= 200) for (const [x, y] of s.points) picture.append(mark(s.run, px(x), py(y), {fill: "var(--paper)", stroke, "stroke-width": 1.8}));
    }
    const cursor = svg("line", {class: "at", y1: top, y2: base, visibility: "hidden"});
    picture.append(cursor);
    scale = {steps: steps(), px, width, cursor};
  });
  let at = -1;
  const show = i => {
    if (!scale) return;
    at = Math.max(0, Math.min(scale.steps.length - 1, i));
    const step = scale.steps[at], x = scale.px(step);
    put(scale.cursor, {x1: x, x2: x, visibility: "visible"});
    const parts = series.map(s => [s, s.points.find(p => p[0] === step)]).filter(([, p]) => p).map(([s, p]) => " · " + s.name + " " + label(p[1]));
    readout.replaceChildren(html("b", {}, "step " + step), parts.join(""));
  };
  picture.addEventListener("pointermove", e => {
    if (!scale) return;
    const x = (e.clientX - picture.getBoundingClientRect().left) * scale.width / picture.clientWidth;
    let low = 0, high = scale.steps.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (scale.px(scale.steps[middle]) < x) low = middle + 1;
      else high = middle;
    }
    show(low > 0 && x - scale.px(scale.steps[low - 1]) < scale.px(scale.steps[low]) - x ? low - 1 : low);
  });
  picture.addEventListener("keydown", e => {
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") e.preventDefault(), show(at + (e.key === "ArrowRight" ? 1 : -1));
  });
  return box;
}
/// The lowest and the highest of the points that share a column of the picture.
function thin(points, columns) {
  if (points.length <= 2 * columns) return points;
  const out = [], each = points.length / columns;
  for (let c = 0; c < columns; ++c) {
    const part = points.slice(Math.floor(c * each), Math.floor((c + 1) * each));
    if (part.length === 0) continue;
    let low = part[0], high = part[0];
    for (const p of part) {
      if (p[1] < low[1]) low = p;
      if (p[1] > high[1]) high = p;
    }
    out.push(...(low[0] <= high[0] ? [low, high] : [high, low]));
  }
  return out;
}
/// Means of neighbours.
function means(points, count) {
  const each = Math.ceil(points.length / count), out = [];
  for (let i = 0; i < points.length; i += each) {
    const part = points.slice(i, i + each);
    out.push([part.reduce((sum, p) => sum + p[0], 0) / part.length, part.reduce((sum, p) => sum + p[1], 0) / part.length]);
  }
  return out;
}
