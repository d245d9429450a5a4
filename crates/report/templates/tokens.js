// The charts of a language model that made tokens: one token after the other with faults, reading and temperature below it,
// and where the model's bytes were. report.js draws all others and lends its tools.
"use strict";
const tokenCharts = ({ $, steps, state, css, colorOf, axis, layout, show, three, plain, narrow, endLabels, choice, segment, drawn }) => {
  const list = steps.filter((step) => step.tokens);
  if (!list.length) return;

  // A tier's name; with the model's where there are several, and with the visit's number where there were several.
  const models = new Set(list.map((step) => step.tokens.model));
  const like = (step) => list.filter((other) => other.subject === step.subject && other.tokens.model === step.tokens.model);
  const named = (step) => [step.subject, models.size > 1 && step.tokens.model, like(step).length > 1 && `visit ${like(step).indexOf(step) + 1}`].filter(Boolean).join(", ");
  const chosen = () => list[Number(state.tokens.step)];
  const until = ({ tokens }) => Math.max(tokens.first, ...tokens.at.slice(-1), ...tokens.lay.t.slice(-1), 0.001) * 1.01;
  const seconds = (step, more = {}) => axis("seconds since the prompt was given", "linear", { range: [0, until(step)], ...more });
  const known = (column) => column.some((value) => value !== null);

  // Where a chart is narrow, the drawing library's buttons would lie on the words above it.
  const above = () => (narrow() ? 52 : 30);

  // The moment of the first token, over the whole height: before it the prompt is taken in.
  const first = (step) => {
    const at = step.tokens.first;
    const late = at > 0.5 * until(step);
    return {
      shapes: [{ type: "line", xref: "x", yref: "paper", x0: at, x1: at, y0: 0, y1: 1, line: { color: css("--ink"), width: 1.5, dash: "dot" } }],
      annotations: [{ x: at, y: 1, xref: "x", yref: "paper", text: `first token, ${three(at)} s`, xanchor: late ? "right" : "left", yanchor: "bottom", showarrow: false, font: { size: 12.5, color: css("--ink") } }],
    };
  };

  // ---- token by token ---------------------------------------------------------------------------------------------

  const WIDE = 2.4; // the tokens' panel, in heights of the others
  const GAP = 0.07;
  function timeline() {
    const now = state.tokens;
    const step = chosen();
    const { tokens } = step;
    const { t, faults, read, temperature } = tokens.meanwhile;
    const color = colorOf(step.color);
    const dash = step.measured ? "solid" : "dash";
    const rate = now.metric === "rate";
    const each = tokens.took.map((took) => (rate ? (took > 0 ? 1 / took : null) : took));
    const log = now.scale === "log";
    const positive = each.filter((value) => value > 0);
    const panels = [];
    if (each.length) {
      panels.push({
        height: WIDE, title: (rate ? "tokens/s" : "s a token") + (log ? " (log.)" : ""), type: now.scale,
        // The first point is where the second token's time begins: it is of the line, not of the figures.
        trace: { lead: 1, x: [tokens.first, ...tokens.at], y: [each[0], ...each], line: { color, width: 1.8, dash, shape: "vh" },
          text: [0, ...each.keys()].map((i) => `${plain(named(step))}<br>${three(tokens.took[i])} s a token, ${three(tokens.took[i] > 0 ? 1 / tokens.took[i] : null)} a second`), hovertemplate: "%{text}<br>at %{x:.1f} s<extra></extra>" },
        more: log && positive.length ? { range: [Math.log10(Math.min(...positive)) - 0.15, Math.log10(Math.max(...positive)) + 0.15], dtick: "D2" } : {},
      });
    }
    const below = (title, name, values, ink, unit) => {
      if (!known(values)) return;
      panels.push({ height: 1, title, type: "linear", more: { nticks: 4 },
        trace: { x: t, y: values, line: { color: ink, width: 1.4, dash }, hovertemplate: `${name} %{y:,.4~g} ${unit}<br>at %{x:.1f} s<extra></extra>` } });
    };
    const source = tokens.from === "swap" ? "swapped in" : "read";
    const given = tokens.from === "disks" ? "what all disks gave" : "what the tier's disk gave";
    below("major<br>faults/s", "major faults", faults, css("--c5"), "a second");
    below(`MB/s<br>${source}`, source, read, css("--c0"), "MB/s");
    below("°C", "temperature", temperature, css("--bad"), "°C");
    // From the top down; the lowest carries the axis.
    const room = (1 - GAP * (panels.length - 1)) / panels.reduce((sum, panel) => sum + panel.height, 0);
    let top = 1;
    const axes = {};
    const traces = panels.map((panel, i) => {
      const number = i ? String(i + 1) : "";
      const bottom = Math.max(0, top - panel.height * room);
      axes[`yaxis${number}`] = axis(panel.title, panel.type, { domain: [bottom, top], ...panel.more });
      top = bottom - GAP;
      return { type: "scatter", mode: "lines", named: named(step), yaxis: `y${number}`, ...panel.trace };
    });
    show("chart-tokens", traces, layout({ margin: { l: 12, r: 16, t: above(), b: 12 }, xaxis: seconds(step, { anchor: `y${panels.length > 1 ? panels.length : ""}` }), ...axes, ...first(step) }));
    const joined = Math.ceil((tokens.of - 1) / Math.max(1, tokens.at.length));
    const missing = [["major faults", faults], [tokens.from === "swap" ? "what was swapped in" : given, read], ["temperature", temperature]].filter(([, column]) => !known(column)).map(([name]) => name);
    $("tokens-note").textContent = [
      each.length ? "Each step of the line is as long as its token took." : "Only one token was made.",
      joined > 1 ? `Each joins ${joined} tokens.` : "",
      known(faults) ? "Faults are the whole machine's." : "",
      known(read) ? `MB/s are ${tokens.from === "swap" ? "what came out of swap, zswap included" : given}.` : "",
      missing.length ? `Not known here: ${missing.join(", ")}.` : "",
    ].filter(Boolean).join(" ");
  }

  // ---- where the bytes are ----------------------------------------------------------------------------------------

  const MIB = 1048576;
  const inWords = (bytes) => (bytes >= 1024 * MIB ? `${three(bytes / (1024 * MIB))} GiB` : `${three(bytes / MIB)} MiB`);
  function lay() {
    const step = chosen();
    const { lay: where } = step.tokens;
    const own = [0, 1, 2, 3, 4, 5].map((index) => css(`--c${index}`));
    // RAM and files have colours of their own, swap the tier's.
    const swap = step.color % 6 === 3 || step.color % 6 === 5 ? own[1] : colorOf(step.color);
    const places = [["anonymous", "own, RAM", "its own pages in RAM", own[3]], ["file", "file, RAM", "pages of files in RAM", own[5]], ["swap", "own, swap", "its own pages in swap", swap]]
      .filter(([key]) => where[key].some((bytes) => bytes > 0));
    const all = where.t.map((_, i) => places.reduce((sum, [key]) => sum + where[key][i], 0));
    const [size, unit] = Math.max(...all, 0) >= 1024 * MIB ? [1024 * MIB, "GiB"] : [MIB, "MiB"];
    const last = where.t.length - 1;
    let under = 0;
    const labels = [];
    const traces = last < 1 ? [] : places.map(([key, short, name, color]) => {
      const y = where[key].map((bytes) => bytes / size);
      labels.push({ x: where.t[last], y: under + y[last] / 2, trace: { named: short, line: { color } } });
      under += y[last];
      return { type: "scatter", mode: "lines", stackgroup: "lay", named: name, x: where.t, y, line: { color, width: 1.5 }, fillcolor: `${color}80`,
        text: y.map((value) => `${name}<br>${three(value)} ${unit}`), hovertemplate: "%{text}<br>at %{x:.1f} s<extra></extra>" };
    });
    const chart = $("chart-lay");
    chart.hidden = false;
    const high = (Math.max(...all, 0) / size) * 1.06 || 1;
    const height = chart.clientHeight - 65 - above();
    // From the top down, as names are moved apart.
    const texts = endLabels(labels, (y) => height * (1 - y / high), false, false);
    const mark = first(step);
    show("chart-lay", traces, layout({
      margin: { l: 12, r: narrow() ? 80 : 100, t: above(), b: 12 }, xaxis: seconds(step), yaxis: axis(unit, "linear", { range: [0, high] }),
      shapes: mark.shapes, annotations: [...mark.annotations, ...texts],
    }));
    chart.hidden = !traces.length;
    const absent = [["anonymous", "own pages in RAM"], ["file", "pages of files in RAM"], ["swap", "own pages in swap"]].filter(([key]) => !places.some(([kept]) => kept === key)).map(([, name]) => name);
    const figures = places.map(([key, , name]) => `${inWords(where[key][last])} ${name}`).join(", ");
    $("lay-note").textContent = !places.length ? `Where its bytes were is not known of ${named(step)}.`
      : last < 1 ? `Looked at once: ${figures}.` : `${named(step)}, at the end: ${figures}${absent.length ? `; no ${absent.join(", no ")}` : ""}.`;
  }

  // ---- all together -----------------------------------------------------------------------------------------------

  const both = () => { timeline(); lay(); };
  state.tokens = { step: "0" };
  if (list.length > 1) choice("tokens", "step", "tier", list.map((step, i) => [String(i), named(step)]), both);
  segment("tokens", "metric", [["rate", "tokens/s"], ["took", "s a token"]], timeline);
  segment("tokens", "scale", [["linear", "linear"], ["log", "logarithmic"]], timeline);
  drawn.push(both);
};

