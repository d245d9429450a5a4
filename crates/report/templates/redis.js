// The chart of a Redis server's slowest requests: each at its moment, by what explains it, over what the server's main thread
// met meanwhile. report.js draws all others and lends its tools.
"use strict";
const redisCharts = ({ $, steps, state, css, axis, layout, show, three, plain, choice, segment, drawn }) => {
  const list = steps.filter((step) => step.late);
  if (!list.length) return;
  const same = (a, b) => a.late.way === b.late.way && a.late.medium === b.late.medium && a.late.payload === b.late.payload && a.run === b.run;
  const named = (step) => {
    const like = list.filter((other) => same(step, other));
    return [`${step.late.way} on ${step.late.medium}`, step.late.payload, like.length > 1 && `visit ${like.indexOf(step) + 1}`].filter(Boolean).join(", ");
  };
  // The same colour for the same reason everywhere; what nothing explains is grey.
  const REASONS = ["fork and child", "own sync", "write behind a pending sync", "disk", "long command", "another program", "stopped", "the load itself", "no processor"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "circle-open", "square-open"];
  const inkOf = (reason) => (REASONS.includes(reason) ? css(`--c${REASONS.indexOf(reason) % 6}`) : css("--faint"));
  function slowest() {
    const step = list[Number(state.late.step)];
    const { requests, stalls, until } = step.late;
    const log = state.late.scale === "log";
    const kinds = [...new Set(requests.map(([, , reason]) => reason))];
    const traces = kinds.map((kind) => {
      const of = requests.filter(([, , reason]) => reason === kind);
      return { type: "scatter", mode: "markers", name: kind, x: of.map(([at]) => at), y: of.map(([, ms]) => ms),
        marker: { color: inkOf(kind), size: 8, symbol: SYMBOLS[REASONS.indexOf(kind)] ?? "x-thin-open", line: { width: 1.5, color: inkOf(kind) } },
        text: of.map(([, ms]) => `${three(ms)} ms: ${plain(kind)}`), hovertemplate: "%{text}<br>at %{x:.3f} s<extra></extra>" };
    });
    // A stall shorter than a line is wide is still seen.
    const least = until / 600;
    const shapes = stalls.map(([from, to, reason]) => ({ type: "rect", xref: "x", yref: "paper", x0: from, x1: Math.max(to, from + least), y0: 0, y1: 1,
      fillcolor: inkOf(reason), opacity: 0.18, line: { width: 0 }, layer: "below" }));
    // The longest is named where it stands.
    const longest = [...stalls].sort((a, b) => b[1] - b[0] - (a[1] - a[0]))[0];
    const annotations = longest ? [{ x: longest[0], y: 1, xref: "x", yref: "paper", text: plain(`${longest[2]}${longest[3] ? ` (${longest[3]})` : ""}, ${three((longest[1] - longest[0]) * 1e3)} ms`),
      xanchor: longest[0] > until / 2 ? "right" : "left", yanchor: "bottom", showarrow: false, font: { size: 12.5, color: css("--ink") } }] : [];
    show("chart-late", traces, layout({ margin: { l: 12, r: 16, t: 52, b: 12 }, showlegend: true, legend: { orientation: "h", y: -0.22 },
      xaxis: axis("seconds since the load began", "linear", { range: [0, until] }), yaxis: axis(`latency, ms${log ? " (log.)" : ""}`, state.late.scale), shapes, annotations }));
    $("late-note").textContent = `${named(step)}: ${requests.length} requests beyond p99.9, each at the moment of its sending or, at a rate, when it was due. Shaded is what the server's main thread met.`;
  }
  state.late = { step: "0" };
  if (list.length > 1) choice("late", "step", "visit", list.map((step, i) => [String(i), named(step)]), slowest);
  segment("late", "scale", [["linear", "linear"], ["log", "logarithmic"]], slowest);
  drawn.push(slowest);
};

