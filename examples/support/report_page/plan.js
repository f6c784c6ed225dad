// Pictures of a plan: boxes with names, which the pointer and the arrow keys read.
function boxes(title, unit, ratio, least, extra, layout) {
  const picture = svg("svg", {role: "img", tabindex: 0, "aria-label": title + "; the arrow keys read the boxes"});
  const readout = html("div", {class: "readout", "aria-live": "polite"});
  const box = html("figure", {class: "wide"}, [html("figcaption", {}, [title, html("span", {}, " " + unit)]), picture, readout, ...extra]);
  let cells = [], on = -1;
  const show = i => {
    if (cells.length === 0) return;
    if (on >= 0 && cells[on]) cells[on].node.classList.remove("on");
    on = Math.max(0, Math.min(cells.length - 1, i));
    cells[on].node.classList.add("on");
    readout.replaceChildren(html("b", {}, cells[on].name), " · " + cells[on].more);
  };
  draws(() => {
    const width = Math.max(280, picture.clientWidth || box.clientWidth || 560), height = Math.max(least, Math.min(width * ratio, 460));
    picture.replaceChildren();
    put(picture, {viewBox: "0 0 " + width + " " + height, height});
    cells = [], on = -1;
    const cell = (x, y, w, h, kind, name, more, text) => {
      if (!(w > 0 && h > 0)) return;
      const i = cells.length, node = svg("rect", {class: "cell", x: x.toFixed(2), y: y.toFixed(2), width: w.toFixed(2), height: h.toFixed(2), fill: "var(--kind" + kind % 8 + ")",
                                                  "data-name": name}, svg("title", {}, name + " · " + more));
      if (w < 4 || h < 4) node.style.strokeWidth = 0.3;
      node.addEventListener("pointerenter", () => show(i));
      picture.append(node);
      cells.push({node, name, more});
      const room = Math.floor((w - 8) / 6.7);
      if (text && h >= 14 && room >= 3) picture.append(svg("text", {class: "in", x: x + 5, y: y + Math.min(h / 2, 16) + 4, "pointer-events": "none"},
                                                           text.length <= room ? text : text.slice(0, room - 1) + "…"));
    };
    layout(picture, width, height, cell);
  });
  picture.addEventListener("keydown", e => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    if (by) e.preventDefault(), show(on + by);
  });
  return box;
}

const ops = new Map();
const kindOf = op => ops.get(op) ?? (ops.set(op, ops.size), ops.size - 1);

/// The time of one step as a flame bar: the step, its parts, their ops, their kernels. A box is as wide as its share of the time.
function flame(run, event) {
  const launches = event.launches.map(l => ({...l})), total = launches.reduce((sum, l) => sum + l.usec, 0);
  const predicted = launches.some(l => isNumber(l.predicted_usec));
  const group = (list, name) => {
    const groups = new Map();
    for (const l of list) groups.set(l[name], [...(groups.get(l[name]) || []), l]);
    return [...groups].map(([key, members]) => ({key, members, usec: members.reduce((sum, l) => sum + l.usec, 0)}));
  };
  const share = usec => units.usec(usec) + ", " + (total > 0 ? short(100 * usec / total) : "0") + " %";
  const head = ["part", "op", "kernel", "set", "launches", "µs", "bytes", ...(predicted ? ["predicted µs"] : [])];
  const rows = () => launches.map(l => [l.part, l.op, l.kernel, l.set, l.times, l.usec, l.bytes, ...(predicted ? [l.predicted_usec] : [])]);
  const box = boxes("Time by kernel", "of step " + event.step + ", " + units.usec(total) + " in launches", 0, 148,
                    [figures("Figures", head, rows)], (picture, width, height, cell) => {
    const row = (height - 4) / 4;
    cell(0, 0, width, row - 2, 7, "step " + event.step, share(total), "step " + event.step + ", " + units.usec(total));
    let x = 0;
    const wide = usec => total > 0 ? usec / total * width : 0;
    for (const part of group(launches, "part")) {
      cell(x, row, wide(part.usec), row - 2, 7, part.key, share(part.usec), part.key + " " + units.usec(part.usec));
      for (const op of group(part.members, "op").sort((a, b) => b.usec - a.usec)) {
        cell(x, 2 * row, wide(op.usec), row - 2, kindOf(op.key), part.key + ", " + op.key, share(op.usec), op.key + " " + units.usec(op.usec));
        for (const l of op.members.sort((a, b) => b.usec - a.usec)) {
          const more = share(l.usec) + ", " + l.times + (l.times === 1 ? " launch" : " launches") + (l.usec > 0 ? ", " + short(l.bytes / l.usec * 1e-3) + " GB/s" : "") +
                       (isNumber(l.predicted_usec) ? ", predicted " + units.usec(l.predicted_usec) : "");
          cell(x, 3 * row, wide(l.usec), row - 2, kindOf(op.key), l.kernel + (l.set ? " (" + l.set + ")" : ""), more, l.kernel);
          x += wide(l.usec);
        }
      }
    }
  });
  box.setAttribute("data-chart", "kernels-" + run);
  return box;
}

/// The arena over the steps of the plan: a tensor is a rectangle from its first byte to its last, and from the launch that writes it to the last that reads it.
function arena(run, event) {
  const regions = event.regions, kinds = regions.map(r => r.name), steps = Math.max(1, event.launches);
  const rows = () => event.tensors.map(t => [t.name, kinds[t.region], t.at, t.bytes, t.first, t.last]);
  const box = boxes("The arena over one step", units.bytes(event.bytes) + ", " + event.launches + " launches, " + event.tensors.length + " tensors", 0.5, 300,
                    [figures("Figures", ["tensor", "region", "at", "bytes", "first launch", "last launch"], rows)], (picture, width, height, cell) => {
    const ys = byteTicks(event.bytes), left = 14 + 6.6 * Math.max(...ys.map(y => units.bytes(y).length)), right = width - 2, base = height - 36, top = 20;
    const px = i => left + i / steps * (right - left), py = at => base - at / Math.max(1, event.bytes) * (base - top);
    for (const y of ys) picture.append(svg("text", {x: left - 6, y: py(y) + 4, "text-anchor": "end"}, y === 0 ? "0" : units.bytes(y)),
                                       svg("line", {class: "grid", x1: left, x2: right, y1: py(y), y2: py(y)}));
    for (const t of event.tensors)
      cell(px(t.first), py(t.at + t.bytes), px(t.last + 1) - px(t.first), py(t.at) - py(t.at + t.bytes), t.region, t.name,
           kinds[t.region] + ", " + units.bytes(t.bytes) + " from byte " + t.at + ", launches " + t.first + " to " + t.last, "");
    let last = Infinity;
    for (const r of regions) {
      const y = py(r.at + r.bytes / 2) + 4;
      if (py(r.at) - py(r.at + r.bytes) < 11 || last - y < 13) continue;
      picture.append(svg("text", {class: "in", x: right - 6, y, "text-anchor": "end", "pointer-events": "none", stroke: "var(--paper)", "stroke-width": 3, "paint-order": "stroke"},
                         r.name + " " + units.bytes(r.bytes)));
      last = y;
    }
    let place = -Infinity;
    for (const part of event.parts) {
      const x = px(part.first);
      picture.append(svg("line", {class: "at", x1: x, x2: x, y1: top - 4, y2: base}));
      const size = 6.7 * part.name.length, before = x + 4 + size > right;
      if ((before ? x - 4 - size : x) - place > 8)
        picture.append(svg("text", {x: before ? x - 4 : x + 4, y: 12, "text-anchor": before ? "end" : "start"}, part.name)), place = before ? x : x + 4 + size;
    }
    picture.append(svg("line", {class: "axis", x1: left, x2: right, y1: base, y2: base}),
                   svg("text", {x: (left + right) / 2, y: height - 3, "text-anchor": "middle"}, "launch"));
    const xs = ticks(0, steps, Math.max(2, width / 110)).filter(Number.isInteger);
    for (const x of xs) picture.append(svg("text", {x: px(x), y: base + 17, "text-anchor": px(x) > right - 18 ? "end" : "middle"}, String(x)));
  });
  box.setAttribute("data-chart", "arena-" + run);
  return box;
}
function byteTicks(bytes) {
  const unit = bytes >= 2 ** 30 ? 2 ** 30 : bytes >= 2 ** 20 ? 2 ** 20 : bytes >= 1024 ? 1024 : 1;
  return ticks(0, Math.max(1, bytes) / unit, 6).map(x => x * unit);
}

/// The regions of the arena beside one another, and what the run measured.
function memory(run, event, done) {
  const box = boxes("Memory by region", "the arena" + (done ? "; planned in all " + units.bytes(done.planned_bytes) + ", measured " + units.bytes(done.measured_bytes) : ""), 0, 44,
                    [], (picture, width, height, cell) => {
    let x = 0;
    event.regions.forEach((r, i) => {
      const w = event.bytes > 0 ? r.bytes / event.bytes * width : 0;
      cell(x, 0, w, height - 4, i, r.name, units.bytes(r.bytes), r.name + " " + units.bytes(r.bytes));
      x += w;
    });
  });
  box.setAttribute("data-chart", "memory-" + run);
  return box;
}
