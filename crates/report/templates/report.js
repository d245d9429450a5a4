// Draws the charts from the data that the page carries, and offers those data as files. Everything that the charts show
// stands in the page's tables too. No request leaves the page.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"];
  const MOST = 6;
  const steps = data.runs.flatMap((run) => run.steps.map((step) => ({ ...step, run: run.run })));
  const measured = steps.filter((step) => step.read || step.write);

  // ---- appearance -------------------------------------------------------------------------------------------------

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colorOf = (index) => css(`--c${index % MOST}`);
  const symbolOf = (index) => SYMBOLS[Math.floor(index / MOST) % SYMBOLS.length];
  const narrow = () => window.innerWidth < 620;
  const axis = (title, type, more = {}) => ({
    title: { text: title, standoff: 10, font: { size: 13, color: css("--soft") } },
    type, color: css("--soft"), gridcolor: css("--grid"), linecolor: css("--edge"), zeroline: false,
    tickfont: { size: 12 }, automargin: true, ...(type === "log" ? logTicks : { rangemode: "tozero" }), ...more,
  });
  const logTicks = { exponentformat: "none", separatethousands: true };
  // A number for each decade; where there are less than two of them, for 1, 2 and 5 of each.
  const decades = (low, high) => {
    const values = [];
    const parts = Math.log10(high / low) < 2 ? [1, 2, 5] : [1];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade += 1) {
      parts.forEach((part) => values.push(part * 10 ** decade));
    }
    return values;
  };
  const rateTicks = (low, high) => ({ tickmode: "array", tickvals: decades(low, high), ticktext: decades(low, high).map(three) });
  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--ink") },
    margin: { l: 12, r: 16, t: 30, b: 12 }, showlegend: false, hovermode: "closest", dragmode: "zoom",
    hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--edge"), font: { color: css("--ink"), size: 13 } },
    separators: ".,", modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--faint"), activecolor: css("--ink") }, ...more,
  });
  const config = { responsive: true, displaylogo: false, displayModeBar: "hover", scrollZoom: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg" } };
  const drawn = [];
  // As wide as its place is now: left to itself a drawing keeps the width that it had first.
  const latest = {};
  const show = (id, traces, look) => {
    latest[id] = { traces, look };
    return Plotly.react(id, traces, { ...look, width: $(id).clientWidth, height: $(id).clientHeight }, config);
  };
  const redraw = () => drawn.forEach((draw) => draw());

  // ---- words ------------------------------------------------------------------------------------------------------

  const three = (value) => {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
    return value === 0 ? "0" : String(Number(value.toPrecision(3)));
  };
  const micros = (us) => (us === null || us === undefined ? "–"
    : us < 1 ? `${three(us * 1e3)} ns` : us < 1e3 ? `${three(us)} µs` : us < 1e6 ? `${three(us / 1e3)} ms` : `${three(us / 1e6)} s`);
  // Plotly reads a few tags in its texts; what comes from the record must stay text.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const latencyTicks = (low, high) => ({ tickmode: "array", tickvals: decades(low, high), ticktext: decades(low, high).map(micros) });
  const extent = (values) => {
    const known = values.filter((value) => value > 0);
    return known.length ? [Math.min(...known), Math.max(...known)] : [1, 10];
  };

  // ---- switches ---------------------------------------------------------------------------------------------------

  const state = {};
  const element = (name, attributes, ...children) => {
    const node = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  function segment(chart, key, options, draw) {
    state[chart] ??= {};
    state[chart][key] ??= options[0][0];
    const group = element("span", { class: "segment", role: "group" });
    options.forEach(([value, text]) => {
      const button = element("button", { type: "button", "aria-pressed": String(state[chart][key] === value) }, text);
      button.addEventListener("click", () => {
        state[chart][key] = value;
        group.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        draw();
      });
      group.append(button);
    });
    document.querySelector(`.switches[data-for=${chart}]`).append(group);
  }
  function choice(chart, key, label, options, draw) {
    state[chart] ??= {};
    state[chart][key] ??= options[0][0];
    const select = element("select", {});
    options.forEach(([value, text]) => select.append(element("option", { value }, text)));
    select.value = state[chart][key];
    select.addEventListener("change", () => { state[chart][key] = select.value; draw(); });
    document.querySelector(`.switches[data-for=${chart}]`).append(element("label", {}, label, select));
    return select;
  }
  const METRICS = [["mbps", "MB/s"], ["iops", "IOPS"], ["mean", "mean"], ["p50", "median"], ["p99", "p99"], ["p99.9", "p99.9"], ["p99.99", "p99.99"], ["p99.999", "p99.999"], ["max", "max"]];
  const isRate = (metric) => metric === "mbps" || metric === "iops";
  const value = (side, metric) => (side ? (isRate(metric) ? side[metric] : side.lat[metric]) : undefined) ?? null;
  const metricTitle = (metric) => (metric === "mbps" ? "MB/s" : metric === "iops" ? "operations a second"
    : `latency, ${METRICS.find(([key]) => key === metric)[1]}, µs`);
  const knownMetrics = (list) => METRICS.filter(([key]) => list.some((step) => value(step.read, key) !== null || value(step.write, key) !== null));

  // ---- at most six series -----------------------------------------------------------------------------------------

  const subjects = [...new Map(measured.map((step) => [step.subject, step])).values()]
    .map((step) => ({ name: step.subject, color: step.color }));
  let shown = subjects.slice(0, MOST).map((subject) => subject.name);
  const isShown = (step) => shown.includes(step.subject);
  function chips() {
    const box = $("chips");
    if (!box || subjects.length < 2) return;
    const buttons = subjects.map((subject) => {
      const swatch = element("span", { class: `swatch c${subject.color % MOST}`, "aria-hidden": "true" });
      const button = element("button", { type: "button" }, swatch, subject.name);
      button.addEventListener("click", () => {
        if (shown.includes(subject.name)) shown = shown.filter((name) => name !== subject.name);
        else shown = [...shown, subject.name].slice(-MOST);
        mark();
        redraw();
      });
      return button;
    });
    const mark = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(shown.includes(subjects[i].name))));
    mark();
    box.append(...buttons);
  }

  // ---- the ladder -------------------------------------------------------------------------------------------------

  const PLACES = [["left", 10, 0], ["right", -10, 0], ["center", 0, -16], ["center", 0, 16], ["left", 8, -13], ["left", 8, 13], ["right", -8, -13], ["right", -8, 13],
    ["center", 0, -28], ["center", 0, 28], ["left", 8, -26], ["left", 8, 26], ["right", -8, -26], ["right", -8, 26]];
  const shorter = (name, most) => (name.length > most ? `${name.slice(0, most - 1).trimEnd()}…` : name);
  // Puts names beside marks, the measured ones first, where they cover neither a mark nor another name. A faint name that
  // finds no place is left to the pointer; a measured one is always written.
  function place(points, box, ranges) {
    const [width, height] = box;
    const marks = points.map((point) => ({
      x: width * (Math.log10(point.x) - ranges.x[0]) / (ranges.x[1] - ranges.x[0]),
      y: height * (1 - (Math.log10(point.y) - ranges.y[0]) / (ranges.y[1] - ranges.y[0])),
    }));
    const names = [];
    const hits = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const around = ({ x, y }) => ({ left: x - 7, right: x + 7, top: y - 7, bottom: y + 7 });
    const out = [];
    points.forEach((point, i) => {
      const size = point.faint ? 11.5 : 13.5;
      const { x, y } = marks[i];
      let label = point.label;
      let long;
      const rect = ([anchor, dx, dy]) => {
        const left = anchor === "left" ? x + dx : anchor === "right" ? x + dx - long : x - long / 2;
        return { left, right: left + long, top: y + dy - size * 0.62, bottom: y + dy + size * 0.62 };
      };
      const inside = (r) => r.left > 0 && r.right < width && r.top > 0 && r.bottom < height;
      const free = (r, faintToo) => !names.some((other) => hits(r, other))
        && !marks.some((mark, j) => j !== i && (faintToo || !points[j].faint) && hits(r, around(mark)));
      // Where a device's whole name finds no place, as on a telephone, its first words may.
      let places;
      let spot;
      for (const most of point.faint ? [34, 18, 12, 8] : [Infinity]) {
        label = shorter(point.label, most);
        long = label.length * size * (point.faint ? 0.54 : 0.62);
        places = PLACES.filter((p) => inside(rect(p)));
        spot = places.find((p) => free(rect(p), true));
        if (spot) break;
      }
      if (!spot && !point.faint) spot = places.find((p) => free(rect(p), false)) ?? places[0] ?? ["right", -10, 0];
      if (!spot) return;
      names.push(rect(spot));
      out.push({ x: Math.log10(point.x), y: Math.log10(point.y), text: point.faint ? plain(label) : `<b>${plain(point.label)}</b>`, showarrow: false,
        xanchor: spot[0], xshift: spot[1], yshift: -spot[2], font: { size, color: point.faint ? css("--soft") : point.color } });
    });
    return out;
  }
  const brief = (name) => shorter(name.replace(/ \(.*?\)/g, ""), 34);
  function ladder() {
    if (!$("chart-ladder")) return;
    const key = state.ladder.by;
    const here = data.ladder.filter((rung) => rung[key] !== null).map((rung) => ({ x: rung[key], y: rung.mbps, label: rung.name, color: colorOf(rung.color), symbol: symbolOf(rung.color), faint: false }));
    const others = data.published.filter((device) => device[key] !== null).map((device) => ({ x: device[key], y: device.mbps, label: brief(device.name), name: device.name, faint: true, source: device.source, notes: device.notes }));
    const all = [...here, ...others];
    const pad = (values) => { const [low, high] = extent(values); return [Math.log10(low) - 0.35, Math.log10(high) + 0.3]; };
    const ranges = { x: pad(all.map((p) => p.x)), y: pad(all.map((p) => p.y)) };
    const element = $("chart-ladder");
    const box = [element.clientWidth - 90, element.clientHeight - 90];
    const trace = (points, marker, hover) => ({ type: "scatter", mode: "markers", names: points.map((p) => p.name ?? p.label), x: points.map((p) => p.x), y: points.map((p) => p.y), text: points.map(hover), hovertemplate: "%{text}<extra></extra>", marker, cliponaxis: false });
    show("chart-ladder", [
      trace(others, { size: 9, color: "rgba(0,0,0,0)", line: { width: 1.5, color: css("--faint") } }, (p) => `<b>${plain(p.name)}</b><br>${three(p.y)} MB/s, ${micros(p.x)}<br>${plain(p.source)}${p.notes.map((note) => `<br>${plain(note)}`).join("")}`),
      trace(here, { size: 13, color: here.map((p) => p.color), symbol: here.map((p) => p.symbol) }, (p) => `<b>${plain(p.label)}</b>, measured here<br>${three(p.y)} MB/s, ${micros(p.x)}`),
    ], layout({
      xaxis: axis((key === "swap_us" ? "mean read latency,|16 KiB 70/30 at depth 4 (logarithmic)" : "mean latency of a page read|at depth 1 (logarithmic)").replace("|", narrow() ? "<br>" : " "), "log", { range: ranges.x, ...latencyTicks(10 ** ranges.x[0], 10 ** ranges.x[1]) }),
      yaxis: axis("sequential read, MB/s (logarithmic)", "log", { range: ranges.y, ...rateTicks(10 ** ranges.y[0], 10 ** ranges.y[1]) }),
      annotations: place(all, box, ranges),
    }));
  }

  // ---- latency by percentile --------------------------------------------------------------------------------------

  const nines = (percent) => -Math.log10(1 - percent / 100);
  const ends = (traces) => traces.filter((trace) => trace.x.length && trace.named).map((trace) => ({
    x: trace.x[trace.x.length - 1], y: trace.y[trace.y.length - 1], trace }));
  // Names at the line ends, moved apart when they would cover each other. `scale` turns a value into pixels.
  function endLabels(list, scale, logX, logY) {
    const sorted = list.map((end) => ({ ...end, at: scale(end.y) })).sort((a, b) => a.at - b.at);
    let last = -Infinity;
    return sorted.map((end) => {
      const at = Math.max(end.at, last + 16);
      last = at;
      return { x: logX ? Math.log10(end.x) : end.x, y: logY ? Math.log10(end.y) : end.y, text: `<b>${plain(end.trace.named)}</b>`, xanchor: "left", xshift: 7,
        yshift: end.at - at, showarrow: false, font: { size: 12.5, color: end.trace.line.color } };
    });
  }
  function percentiles() {
    const now = state.percentiles;
    const list = measured.filter((step) => isShown(step) && step.name === now.step && step[now.way]);
    const traces = [];
    list.forEach((step) => {
      const line = (points, name, style) => ({ type: "scatter", mode: "lines", named: name, raw: points.map(([p]) => p), x: points.map(([p]) => nines(p)), y: points.map(([, us]) => us),
        line: { color: colorOf(step.color), width: 2.4, ...style }, text: points.map(([p, us]) => `${plain(name)}<br>p${Number(p.toPrecision(7))}: ${micros(us)}`), hovertemplate: "%{text}<extra></extra>" });
      traces.push(line(step[now.way].curve, step.subject, step.measured ? {} : { dash: "dash" }));
      if (step[now.way].service) traces.push(line(step[now.way].service, `${step.subject}, service`, { dash: "dot", width: 1.6 }));
    });
    const [low, high] = extent(traces.flatMap((trace) => trace.y));
    const log = now.scale === "log";
    const depth = Math.max(1, ...traces.flatMap((trace) => trace.x.slice(-1)));
    const ticks = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999].filter((p) => nines(p) <= depth + 0.01);
    const height = $("chart-percentiles").clientHeight - 95;
    const range = log ? [Math.log10(low) - 0.12, Math.log10(high) + 0.12] : [0, high * 1.06];
    const scale = (y) => height * (1 - ((log ? Math.log10(y) : y) - range[0]) / (range[1] - range[0]));
    show("chart-percentiles", traces, layout({
      margin: { l: 12, r: narrow() ? 70 : 110, t: 30, b: 12 },
      xaxis: axis("percentile of operations", "linear", { range: [0, depth], tickmode: "array", tickvals: ticks.map(nines), ticktext: ticks.map((p) => (p === 0 ? "0" : `p${p}`)) }),
      yaxis: axis(`latency of a ${now.way}${log ? " (logarithmic)" : ""}`, now.scale, { range, ...(log ? latencyTicks(low, high) : linearMicros(high)) }),
      annotations: endLabels(ends(traces), scale, false, log),
    }));
  }
  const linearMicros = (high) => {
    const [unit, name] = high < 1e3 ? [1, "µs"] : high < 1e6 ? [1e3, "ms"] : [1e6, "s"];
    const step = 10 ** Math.floor(Math.log10(high / unit)) / (high / unit / 10 ** Math.floor(Math.log10(high / unit)) < 3 ? 2 : 1);
    const values = [];
    for (let v = 0; v <= high / unit; v += step) values.push(v);
    return { tickmode: "array", tickvals: values.map((v) => v * unit), ticktext: values.map((v) => `${three(v)} ${name}`) };
  };

  // ---- tier beside tier -------------------------------------------------------------------------------------------

  // A mark for each point of a curve would say less than the curve: patterns that some tier has outside of one.
  const inCurves = new Set(data.runs.flatMap((run) => run.sweeps.flatMap((curve) => curve.points.map((p) => `${run.run} ${p.step}`))));
  const alone = new Set(measured.filter((step) => !inCurves.has(`${step.run} ${step.index}`)).map((step) => step.name));
  const besides = (step) => isShown(step) && alone.has(step.name);
  function compare() {
    const now = state.compare;
    const patterns = [];
    measured.filter(besides).forEach((step) => ["read", "write"].forEach((way) => {
      if (value(step[way], now.metric) === null) return;
      const name = step.read && step.write ? `${step.name} ${way}` : step.name;
      if (!patterns.includes(name)) patterns.push(name);
    }));
    const traces = subjects.filter((subject) => shown.includes(subject.name)).map((subject) => {
      const points = measured.filter((step) => step.subject === subject.name && besides(step)).flatMap((step) => ["read", "write"].filter((way) => value(step[way], now.metric) !== null).map((way) => ({
        y: step.read && step.write ? `${step.name} ${way}` : step.name, x: value(step[way], now.metric),
        error: isRate(now.metric) && step[way].ci ? (value(step[way], now.metric) * step[way].ci) / 100 : 0, simulated: !step.measured })));
      return { type: "scatter", mode: "markers", name: subject.name, x: points.map((p) => p.x), y: points.map((p) => p.y),
        error_x: { type: "data", array: points.map((p) => p.error), color: colorOf(subject.color), thickness: 1.6, width: 5, visible: points.some((p) => p.error > 0) },
        marker: { size: 11, color: points.map((p) => (p.simulated ? css("--bg") : colorOf(subject.color))), symbol: symbolOf(subject.color), line: { width: 2, color: colorOf(subject.color) } },
        text: points.map((p) => `${plain(subject.name)}, ${plain(p.y)}<br>${isRate(now.metric) ? `${three(p.x)} ${now.metric === "mbps" ? "MB/s" : "IOPS"}` : micros(p.x)}${p.error ? ` ±${three((100 * p.error) / p.x)} % (95 %)` : ""}`),
        hovertemplate: "%{text}<extra></extra>", cliponaxis: false };
    });
    const [low, high] = extent(traces.flatMap((trace) => trace.x));
    const log = now.scale === "log";
    const latency = !isRate(now.metric);
    show("chart-compare", traces, layout({
      xaxis: axis(metricTitle(now.metric).replace(", µs", "") + (log ? " (logarithmic)" : ""), now.scale, { range: log ? [Math.log10(low) - 0.15, Math.log10(high) + 0.15] : [0, high * 1.06], ...(latency ? (log ? latencyTicks(low, high) : linearMicros(high)) : log ? rateTicks(low, high) : {}) }),
      yaxis: { type: "category", categoryorder: "array", categoryarray: [...patterns].reverse(), color: css("--ink"), gridcolor: css("--grid"), automargin: true, fixedrange: true, range: [-0.6, patterns.length - 0.4], tickfont: { size: narrow() ? 11 : 13 } },
    }));
  }

  // ---- sweeps -----------------------------------------------------------------------------------------------------

  const curves = data.runs.flatMap((run) => run.sweeps);
  const size = (bytes) => (bytes >= 1048576 ? `${bytes / 1048576} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`);
  const AXES = { size: ["block size (logarithmic)", size], depth: ["queue depth (logarithmic)", String], reads: ["reads, % of all operations", String] };
  function sweep(axisName) {
    const id = `sweep-${axisName}`;
    const now = state[id];
    const here = curves.filter((curve) => curve.axis === axisName && curve.title === now.title && shown.includes(curve.subject));
    const words = (v) => (isRate(now.metric) ? `${three(v)} ${now.metric === "mbps" ? "MB/s" : "IOPS"}` : micros(v));
    const [title, text] = AXES[axisName];
    const traces = here.map((curve) => {
      const points = curve.points.filter((p) => value(p, now.metric) !== null).sort((a, b) => a.at - b.at);
      return { type: "scatter", mode: "lines+markers", named: curve.subject, x: points.map((p) => p.at), y: points.map((p) => value(p, now.metric)),
        error_y: { type: "data", array: points.map((p) => (isRate(now.metric) ? (value(p, now.metric) * (p.ci ?? 0)) / 100 : 0)), thickness: 1.4, width: 4 },
        text: points.map((p) => `${plain(curve.subject)}, ${text(p.at)}<br>${words(value(p, now.metric))}`), hovertemplate: "%{text}<extra></extra>",
        line: { color: colorOf(curve.color), width: 2.2, dash: curve.measured ? "solid" : "dash" }, marker: { symbol: symbolOf(curve.color), size: 8 } };
    }).filter((trace) => trace.x.length);
    const range = (values) => { const [low, high] = extent(values); return [low, high]; };
    const [first, last] = range(traces.flatMap((trace) => trace.x));
    // What others published lies on the same axes where its pattern is the same; beyond the sweep's ends it would squeeze the curves.
    const others = isRate(now.metric) ? data.points.filter((p) => p.axis === axisName && p.title === now.title && p.at >= first && p.at <= last) : [];
    if (others.length) traces.push({ type: "scatter", mode: "markers", x: others.map((p) => p.at), y: others.map((p) => p[now.metric]), names: others.map((p) => `${p.name}, published`),
      marker: { size: 11, symbol: "diamond-open", color: css("--soft"), line: { width: 1.6 } }, text: others.map((p) => `<b>${plain(p.name)}</b>, published<br>${words(p[now.metric])} at ${text(p.at)}<br>${plain(p.source)}`), hovertemplate: "%{text}<extra></extra>" });
    const names = [...new Set(others.map((p) => p.name))];
    $(`note-${id}`).textContent = names.length ? `Diamonds are published figures: ${names.join(", ")}.` : "";
    const log = now.scale === "log";
    const [low, high] = extent(traces.flatMap((trace) => trace.y));
    const xs = [...new Set(traces.flatMap((trace) => trace.x))].sort((a, b) => a - b);
    const upTo = log ? [Math.log10(low) - 0.12, Math.log10(high) + 0.12] : [0, high * 1.06];
    const height = $(`chart-${id}`).clientHeight - 95;
    const scale = (y) => height * (1 - ((log ? Math.log10(y) : y) - upTo[0]) / (upTo[1] - upTo[0]));
    const mixed = axisName === "reads";
    const ticks = narrow() && xs.length > 7 ? xs.filter((_, i) => i % 2 === 0) : xs;
    show(`chart-${id}`, traces, layout({
      margin: { l: 12, r: narrow() ? 80 : 120, t: 30, b: 12 },
      // A mix is read from all reads to all writes, as in the review.
      xaxis: axis(title, mixed ? "linear" : "log", { tickmode: "array", tickvals: ticks, ticktext: ticks.map(text), ...(mixed ? { range: [103, -3] } : {}) }),
      yaxis: axis(metricTitle(now.metric).replace(", µs", "") + (log ? " (logarithmic)" : ""), now.scale, { range: upTo, ...(isRate(now.metric) ? (log ? rateTicks(low, high) : {}) : log ? latencyTicks(low, high) : linearMicros(high)) }),
      annotations: endLabels(mixed ? traces.filter((t) => t.named).map((trace) => ({ x: trace.x[0], y: trace.y[0], trace })) : ends(traces), scale, !mixed, log),
    }));
  }

  // ---- over time --------------------------------------------------------------------------------------------------

  function time() {
    const now = state.time;
    const run = data.runs.find((candidate) => candidate.run === now.run) ?? data.runs[0];
    const list = run.steps.map((step) => ({ ...step, run: run.run })).filter((step) => step.series.t.length && (now.step === "all" ? isShown(step) : String(step.index) === now.step));
    const traces = [];
    const annotations = [];
    const shapes = [];
    const domains = { rate: [0.56, 1], latency: [0.3, 0.5], machine: [0, 0.23] };
    let stalls = 0;
    list.forEach((step) => {
      const at = now.step === "all" ? step.at : 0;
      const middle = step.series.t.map((t, i) => at + t + step.series.w[i] / 2);
      ["read", "write"].filter((way) => step[way]).forEach((way) => {
        traces.push({ type: "scatter", mode: "lines", named: `${step.subject}, ${step.name}, ${way}`, x: middle, y: step.series[way][now.metric], line: { color: colorOf(step.color), width: way === "read" ? 1.8 : 1.4, dash: step.measured ? (way === "read" ? "solid" : "2px,2px") : "dash" },
          text: middle.map((t, i) => `${plain(step.subject)}, ${plain(step.name)}, ${way}<br>${three(step.series[way][now.metric][i])} ${now.metric === "mbps" ? "MB/s" : "IOPS"}<br>p99 ${micros(step.series[way].p99[i])}`), hovertemplate: "%{text}<br>at %{x:.1f} s<extra></extra>" });
      });
      traces.push({ type: "scatter", mode: "lines", named: `${step.subject}, ${step.name}`, yaxis: "y2", x: middle, y: step.series.max, line: { color: colorOf(step.color), width: 1.2 }, hovertemplate: `${plain(step.subject)}, largest latency %{y:,.0f} µs<br>at %{x:.1f} s<extra></extra>` });
      // The list that the findings speak of.
      step.stalls.forEach(([from, to]) => {
        stalls += 1;
        shapes.push({ type: "rect", xref: "x", yref: "paper", x0: at + from, x1: at + to, y0: domains.latency[0], y1: 1, fillcolor: css("--bad"), opacity: 0.22, line: { width: 0 }, layer: "below" });
      });
      if (now.step === "all") {
        shapes.push({ type: "line", xref: "x", yref: "paper", x0: at, x1: at, y0: 0, y1: 1, line: { color: css("--grid"), width: 1 }, layer: "below" });
      }
    });
    // One name for each stretch of a tier, where it begins; a row higher where the one before would be covered.
    const until = Math.max(0.001, ...list.map((step) => (now.step === "all" ? step.at : 0) + step.elapsed));
    const rows = [];
    if (now.step === "all") {
      const pixels = ($("chart-time").clientWidth - 150) / until;
      let last = null;
      list.forEach((step) => {
        if (step.subject !== last) {
          let row = rows.findIndex((right) => step.at * pixels > right);
          if (row < 0) row = rows.length;
          rows[row] = step.at * pixels + step.subject.length * 8 + 8;
          annotations.push({ x: step.at, y: 1, xref: "x", yref: "paper", text: `<b>${plain(step.subject)}</b>`, xanchor: "left", yanchor: "bottom", yshift: row * 16, showarrow: false, font: { size: 12.5, color: colorOf(step.color) } });
        }
        last = step.subject;
      });
    }
    const samples = { t: [], temperature: [], cpu: [], iowait: [], throttled: [] };
    list.forEach((step) => {
      const at = now.step === "all" ? step.at : 0;
      step.machine.t.forEach((t, i) => {
        samples.t.push(at + t);
        ["temperature", "cpu", "iowait", "throttled"].forEach((key) => samples[key].push(step.machine[key][i]));
      });
      ["temperature", "cpu", "iowait"].forEach((key) => samples[key].push(null));
      samples.t.push(null);
      samples.throttled.push(false);
    });
    samples.throttled.forEach((hot, i) => {
      if (hot && samples.t[i + 1]) shapes.push({ type: "rect", xref: "x", yref: "paper", x0: samples.t[i], x1: samples.t[i + 1], y0: 0, y1: domains.machine[1], fillcolor: css("--fair"), opacity: 0.25, line: { width: 0 }, layer: "below" });
    });
    const machineEnds = [];
    const machine = (key, name, color, dash, unit) => {
      if (!samples[key].some((v) => v !== null)) return;
      traces.push({ type: "scatter", mode: "lines", named: name, yaxis: "y3", x: samples.t, y: samples[key], line: { color, width: 1.5, dash }, hovertemplate: `${name} %{y:.0f} ${unit}<br>at %{x:.1f} s<extra></extra>` });
      const end = samples[key].findLastIndex((v) => v !== null);
      machineEnds.push({ x: samples.t[end], y: samples[key][end], trace: { named: name, line: { color } } });
    };
    // The moment that a piece of evidence speaks of.
    if (now.mark !== null && now.step !== "all") {
      shapes.push({ type: "line", xref: "x", yref: "paper", x0: now.mark, x1: now.mark, y0: 0, y1: 1, line: { color: css("--ink"), width: 1.5, dash: "dot" } });
      annotations.push({ x: now.mark, y: 1, xref: "x", yref: "paper", text: `${three(now.mark)} s`, yanchor: "bottom", showarrow: false, font: { size: 12.5, color: css("--ink") } });
    }
    machine("cpu", "CPU busy", css("--c5"), "solid", "%");
    machine("iowait", "iowait", css("--c0"), "dot", "%");
    machine("temperature", "°C", css("--bad"), "solid", "°C");
    const high = ($("chart-time").clientHeight - 90) * domains.machine[1];
    endLabels(machineEnds, (y) => high * (1 - y / 105), false, false).forEach((label) => annotations.push({ ...label, yref: "y3" }));
    const log = now.scale === "log";
    const largest = extent(list.flatMap((step) => step.series.max));
    const rates = extent(list.flatMap((step) => ["read", "write"].filter((way) => step[way]).flatMap((way) => step.series[way][now.metric])));
    show("chart-time", traces, layout({
      margin: { l: 12, r: narrow() ? 62 : 76, t: 14 + 17 * Math.max(1, rows.length), b: 12 },
      xaxis: axis(`seconds since the ${now.step === "all" ? "run" : "step"} began`, "linear", { anchor: "y3", range: [0, until * 1.01], showgrid: now.step !== "all" }),
      yaxis: axis((now.metric === "mbps" ? "MB/s" : "IOPS") + (log ? " (log.)" : ""), now.scale, { domain: domains.rate, ...(log ? { range: [Math.log10(rates[0]) - 0.2, Math.log10(rates[1]) + 0.2], ...rateTicks(...rates) } : {}) }),
      yaxis2: axis("largest latency", "log", { domain: domains.latency, ...latencyTicks(...largest), range: [Math.log10(largest[0]) - 0.2, Math.log10(largest[1]) + 0.2] }),
      yaxis3: axis("% and °C", "linear", { domain: domains.machine, range: [0, 105] }),
      shapes, annotations,
    }));
    const joined = Math.max(1, ...list.map((step) => step.series.joined));
    $("time-note").textContent = [
      "Solid is reads, dotted writes.",
      stalls ? `${stalls} ${stalls === 1 ? "stall is" : "stalls are"} shaded: under a quarter of the step's usual rate, with an operation that hung.` : "No stall: nowhere did the rate fall under a quarter of the usual while an operation hung.",
      samples.throttled.some(Boolean) ? "Throttling is shaded in the lowest part." : run.throttle_known ? "No throttling was reported meanwhile." : "Throttling is not reported by this machine.",
      joined > 1 ? `Each point joins ${joined} intervals.` : "",
    ].filter(Boolean).join(" ");
  }

  // ---- downloads --------------------------------------------------------------------------------------------------

  const COLUMNS = ["run", "step", "name", "subject", "start_s", "width_s", "read_iops", "read_MBps", "read_p99_us", "write_iops", "write_MBps", "write_p99_us", "max_us"];
  const cell = (v) => (typeof v === "string" && /[",\n]/.test(v) ? `"${v.replace(/"/g, '""')}"` : v ?? "");
  const csv = () => [COLUMNS.join(","), ...steps.flatMap((step) => step.series.t.map((t, i) => [step.run, step.index, step.name, step.subject, t, step.series.w[i],
    step.series.read.iops[i], step.series.read.mbps[i], step.series.read.p99[i], step.series.write.iops[i], step.series.write.mbps[i], step.series.write.p99[i], step.series.max[i]].map(cell).join(",")))].join("\n") + "\n";
  const download = (text, type, name) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  document.querySelectorAll("[data-download]").forEach((button) => button.addEventListener("click", () => {
    const json = button.dataset.download === "json";
    const text = json ? JSON.stringify(data.raw.length === 1 ? data.raw[0] : data.raw, null, 1) : csv();
    download(text, json ? "application/json" : "text/csv", data.file.replace(/\.html$/, json ? ".json" : ".csv"));
  }));
  // What a chart shows now, a line for each point: its line, both coordinates, and half of the interval of confidence.
  function shownAs(chart) {
    const { traces, look } = latest[`chart-${chart}`];
    const title = (which) => look[which].title?.text.replace(/<br>/g, " ").replace(/ \(log.*\)/, "") ?? "";
    const latencies = (name) => (/latency/.test(name) ? `${name} (µs)` : name);
    const lines = traces.flatMap((trace) => trace.x.map((x, i) => [trace.names?.[i] ?? trace.named ?? trace.name, trace.raw?.[i] ?? x,
      latencies(title((trace.yaxis ?? "y").replace("y", "yaxis"))), trace.y[i], (trace.error_y ?? trace.error_x)?.array?.[i]]).filter((line, i) => i >= (trace.lead ?? 0) && line[1] !== null && line[3] !== null));
    return [["series", latencies(title("xaxis")), "figure", "value", "ci95"], ...lines].map((line) => line.map(cell).join(",")).join("\n") + "\n";
  }
  const offer = (chart) => {
    const button = element("button", { type: "button", class: "csv", title: "what this chart shows, as a table" }, "CSV");
    button.addEventListener("click", () => download(shownAs(chart), "text/csv", data.file.replace(/\.html$/, `-${chart}.csv`)));
    document.querySelector(`.switches[data-for=${chart}]`).append(button);
  };

  // ---- all together -----------------------------------------------------------------------------------------------

  if (typeof Plotly === "undefined") return;
  if ($("chart-ladder")) {
    // Start with the figure that more published devices have.
    const count = (key) => data.published.filter((device) => device[key] !== null).length * (data.ladder.some((rung) => rung[key] !== null) ? 1 : 0);
    const options = [["swap_us", "16K 70/30 at depth 4"], ["page_us", "page read at depth 1"]].filter(([key]) => data.ladder.some((rung) => rung[key] !== null));
    options.sort((a, b) => count(b[0]) - count(a[0]));
    if (options.length) {
      segment("ladder", "by", options, ladder);
      drawn.push(ladder);
    } else $("chart-ladder").hidden = true;
  }
  if ($("chart-late")) redisCharts({ $, steps, state, css, axis, layout, show, three, plain, choice, segment, drawn });
  if ($("chart-tokens")) tokenCharts({ $, steps, state, css, colorOf, axis, layout, show, three, plain, narrow, endLabels, choice, segment, drawn });
  if (measured.length) {
    chips();
    const names = [...new Set(measured.map((step) => step.name))];
    const tiersOf = (name) => new Set(measured.filter((step) => step.name === name).map((step) => step.subject)).size;
    const first = names.includes("swap-sim") ? "swap-sim" : [...names].sort((a, b) => tiersOf(b) - tiersOf(a))[0];
    state.percentiles = { step: first };
    if (names.length > 1) choice("percentiles", "step", "pattern", names.map((name) => [name, name]), percentiles);
    const ways = [["read", "reads"], ["write", "writes"]].filter(([way]) => measured.some((step) => step[way]));
    ways.sort((a, b) => measured.some((step) => step.name === first && step[b[0]]) - measured.some((step) => step.name === first && step[a[0]]));
    state.percentiles.way = ways[0][0];
    if (ways.length > 1) segment("percentiles", "way", ways, percentiles);
    segment("percentiles", "scale", [["log", "logarithmic"], ["linear", "linear"]], percentiles);
    drawn.push(percentiles);
    if (measured.length > 1 && alone.size) {
      choice("compare", "metric", "figure", knownMetrics(measured), compare);
      segment("compare", "scale", [["log", "logarithmic"], ["linear", "linear"]], compare);
      drawn.push(compare);
    } else $("beside").hidden = true;
    Object.keys(AXES).forEach((axisName) => {
      const own = curves.filter((curve) => curve.axis === axisName);
      if (!own.length) return;
      const id = `sweep-${axisName}`;
      const draw = () => sweep(axisName);
      $(id).hidden = false;
      const titles = [...new Set(own.map((curve) => curve.title))];
      // What most devices have comes first.
      titles.sort((a, b) => own.filter((curve) => curve.title === b).length - own.filter((curve) => curve.title === a).length);
      state[id] = { title: titles[0] };
      if (titles.length > 1) choice(id, "title", "pattern", titles.map((title) => [title, title]), draw);
      const known = METRICS.filter(([key]) => own.some((curve) => curve.points.some((p) => value(p, key) !== null)));
      segment(id, "metric", known.filter(([key]) => ["mbps", "iops", "mean", "p50", "p99", "p99.999"].includes(key)), draw);
      segment(id, "scale", [["linear", "linear"], ["log", "logarithmic"]], draw);
      drawn.push(draw);
    });
    let stepChoice;
    const fill = () => {
      const run = data.runs.find((candidate) => candidate.run === state.time.run);
      const list = run.steps.filter((step) => step.series.t.length);
      stepChoice.replaceChildren(element("option", { value: "all" }, "whole run"), ...list.map((step) => element("option", { value: String(step.index) }, `${step.index} ${step.name}, ${step.subject}`)));
      state.time.step = list.length === 1 ? String(list[0].index) : "all";
      stepChoice.value = state.time.step;
    };
    state.time = { run: data.runs[0].run, mark: null };
    const runChoice = data.runs.length > 1 && choice("time", "run", "run", data.runs.map((run) => [run.run, run.run]), () => { fill(); time(); });
    stepChoice = choice("time", "step", "step", [["all", "whole run"]], () => { state.time.mark = null; time(); });
    fill();
    // Several tiers lie decades apart, a single step does not.
    state.time.scale = measured.length > 1 ? "log" : "linear";
    segment("time", "metric", [["mbps", "MB/s"], ["iops", "IOPS"]], time);
    segment("time", "scale", [["log", "logarithmic"], ["linear", "linear"]], time);
    drawn.push(time);
    // Evidence leads to the very interval.
    document.querySelectorAll("[data-step]").forEach((link) => link.addEventListener("click", (event) => {
      if (state.time.run !== link.dataset.run) {
        state.time.run = link.dataset.run;
        if (runChoice) runChoice.value = link.dataset.run;
        fill();
      }
      if (![...stepChoice.options].some((option) => option.value === link.dataset.step)) return;
      event.preventDefault();
      const moment = link.textContent.match(/ at ([0-9.]+) s\b/);
      state.time.mark = moment ? Number(moment[1]) : null;
      state.time.step = link.dataset.step;
      stepChoice.value = link.dataset.step;
      time();
      $("chart-time").scrollIntoView({ block: "center" });
    }));
  }
  redraw();
  Object.keys(latest).forEach((id) => offer(id.replace(/^chart-/, "")));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // The charts' own width, not the window's: a telephone keeps its window as wide as what lies in it.
  let waiting;
  const room = document.querySelector("main");
  let wide = room.clientWidth;
  const resized = () => {
    if (room.clientWidth === wide) return;
    wide = room.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  };
  window.addEventListener("resize", resized);
  new ResizeObserver(resized).observe(room);
  const print = (paper) => { document.documentElement.classList.toggle("paper", paper); redraw(); };
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  document.documentElement.dataset.charts = String(drawn.length);
})();
