// The spread of a column as bars, with the value and the repair of one cell marked.
import { counted, el, number, svg } from "./dom.js";

const TALL = 84;

export function chart(picture) {
  if (picture === null) return el("p", { className: "quiet" }, "Drawn as soon as the model is read.");
  if (picture.kind === "numbers") return histogram(picture);
  if (picture.kind === "levels") return levels(picture);
  return el("p", { className: "quiet" }, `Nearly all values differ: ${counted(picture.others, "different value")}.`);
}

function histogram({ counts, labels, ticks, value, repair }) {
  const most = Math.max(...counts, 1);
  const first = counts[0] || [value, repair].some((each) => each?.bar === 0) ? 0 : 1;
  const beyond = counts.at(-1) || [value, repair].some((each) => each?.bar === counts.length - 1);
  const last = counts.length - (beyond ? 1 : 2);
  const drawing = svg("svg", { viewBox: `${first} -16 ${last - first + 1} ${TALL + 17}`, preserveAspectRatio: "none", class: "histogram", role: "img", "aria-label": described(labels, value, repair) });
  for (let bar = first; bar <= last; bar += 1) {
    const high = counts[bar] ? Math.max((TALL * counts[bar]) / most, 1.5) : 0;
    const style = bar === 0 || bar === counts.length - 1 ? "bar gross" : "bar";
    const title = svg("title", {}, `${labels[bar]}: ${counted(counts[bar], "value")}`);
    drawing.append(svg("rect", { x: bar + 0.06, width: 0.88, y: TALL - high, height: high, class: style }, title));
  }
  drawing.append(svg("path", { d: `M${first} ${TALL}h${last - first + 1}`, class: "axis" }));
  for (const [place, style] of [[value, "found"], [repair, "meant"]]) {
    if (place?.bar === null || place === null || place.bar < first || place.bar > last) continue;
    drawing.append(svg("path", { d: `M${place.bar + 0.5} -14V${TALL}`, class: `mark ${style}` }));
  }
  const marks = el("p", { className: "ticks" }, ...ticks.map((tick) => el("span", {}, tick)));
  const ends = [first === 0 ? labels[0] : "", last === counts.length - 1 ? labels.at(-1) : ""];
  const gross = ends.some(Boolean) ? el("p", { className: "ticks gross" }, ...ends.map((end) => el("span", {}, end))) : null;
  return el("figure", {}, drawing, marks, ...(gross ? [gross] : []), legend(value, repair));
}

function levels({ counts, labels, value, repair, others }) {
  const most = Math.max(...counts);
  const lines = labels.map((label, bar) => line(label, counts[bar], most, styleOf(bar, value, repair)));
  for (const [place, style] of [[value, "found"], [repair, "meant"]]) {
    if (place && place.bar === null) lines.push(line(place.text, place.count, most, style));
  }
  const rest = others ? el("p", { className: "quiet" }, `and ${counted(others, "other value")}`) : null;
  return el("figure", {}, el("ul", { className: "levels" }, ...lines), ...(rest ? [rest] : []), legend(value, repair));
}

const styleOf = (bar, value, repair) => (value?.bar === bar ? "found" : repair?.bar === bar ? "meant" : "");

function line(label, count, most, style) {
  const bar = el("span", { className: "length" });
  bar.style.width = `${(100 * count) / most}%`;
  return el("li", { className: style }, el("span", { className: "label" }, label), el("span", { className: "room" }, bar), el("span", { className: "count" }, number(count)));
}

function legend(value, repair) {
  const parts = [];
  if (value) parts.push(el("span", { className: "found" }, "found"));
  if (repair) parts.push(el("span", { className: "meant" }, "proposed"));
  return el("figcaption", { className: "legend" }, ...parts);
}

function described(labels, value, repair) {
  const where = (place, word) => (place?.bar === null || !place ? "" : `; ${word} ${place.text} lies at ${labels[place.bar]}`);
  return `Histogram of the column${where(value, "the value")}${where(repair, "the repair")}`;
}
