// The values of a column: how often each stands, spellings of the same thing, and one rewriting of all of them. Whatever is
// set here is set wherever the value stands, as one step.
import { ask } from "./api.js";
import { apart, byId, chooseFrom, counted, el, notify, number, openDialog, plain, shown, told } from "./dom.js";
import * as outbox from "./outbox.js";
import { state } from "./state.js";
import { targetForm } from "./target.js";

const WAYS = ["all", "spellings", "rewrite"]; // to look at a column
const filters = byId("value-filters");
const list = byId("value-list");
const rewriting = byId("rewriting");
let way = "all";
const ticks = new Map(); // of values that are ticked: in how many cells each stands
const typedTargets = new Map(); // of clusters, by their first value: what was typed
const unticked = new Map(); // likewise: the values that are left out
let shownValues = 0;
let version = -1;
let asked = 0; // how often it was asked: an answer that another overtook is left
let showRows = () => {};

const column = () => filters.elements.column.value;
const guarded = (work) => work.catch((error) => notify(error.message, true));
const keyOf = (value) => JSON.stringify(value);
const sum = (counts) => counts.reduce((total, count) => total + count, 0);

// `show(column, value)` is called to show the rows that hold a value.
export const onRows = (show) => { showRows = show; };

// ---------------------------------------------------------------- all values

async function drawAll(start = 0, byItself = false) {
  const turn = (asked += 1);
  const found = await ask("values", { column: column(), text: filters.elements.text.value, start });
  if (turn !== asked || (byItself && isTyping())) return;
  version = found.version;
  if (!start) list.replaceChildren();
  list.querySelector(".more")?.remove();
  list.append(...found.values.map((each) => valueItem(each, found.largest)));
  shownValues = start + found.values.length;
  const left = found.total - shownValues;
  if (left) list.append(el("li", { className: "more" }, el("button", { type: "button", className: "quietly", onclick: () => guarded(drawAll(shownValues)) }, `${counted(left, "more value")}`)));
  byId("values-listed").textContent = `${counted(found.total, "value")} in ${counted(found.cells, "cell")}`;
  byId("plain").hidden = !found.plain;
  byId("plain").querySelector("button").textContent = `Take away units and words for “missing”: ${counted(found.plain, "cell")}…`;
  drawTicked();
}

function valueItem({ value, count, repair }, largest) {
  const key = keyOf(value);
  const box = el("input", { type: "checkbox", checked: ticks.has(key), "aria-label": plain(value), onchange: () => { if (box.checked) ticks.set(key, { value, count }); else ticks.delete(key); drawTicked(); } });
  const bar = el("span", { className: "length" });
  bar.style.width = `${Math.max((100 * count) / largest, 1)}%`;
  const proposed = repair === null ? null : el("small", { className: "meant" }, "→ ", shown(repair));
  const edit = el("button", { type: "button", className: "quietly", onclick: () => editValues([{ value, count }], repair ?? value, item) }, "Edit");
  const rows = el("button", { type: "button", className: "quietly", onclick: () => showRows(column(), value ?? "") }, "Rows");
  const item = el("li", { className: "value" },
    el("div", { className: "value-head" }, el("label", {}, box, el("span", { className: "text" }, shown(value), " ", proposed)),
      el("span", { className: "room", "aria-hidden": "true" }, bar), el("span", { className: "count" }, number(count)), el("div", { className: "ways" }, edit, rows)));
  return item;
}

function drawTicked() {
  const box = byId("ticked-values");
  box.hidden = !ticks.size;
  if (box.hidden) return box.replaceChildren();
  if (box.querySelector("form")) box.querySelector("label").replaceChildren(...tickedWords());
  else editValues([], null, box);
  box.querySelector("button[type=submit]").textContent = `Set ${counted(sum([...ticks.values()].map(({ count }) => count)), "cell")}`;
}

const tickedWords = () => told`What ${counted(ticks.size, "ticked value")} of ${column()} should be`;

// Set these values, or those that are ticked when it is saved.
function editValues(values, target, place) {
  if (place.querySelector("form")) return place.querySelector("form input").focus();
  const isTicked = !values.length;
  const chosen = () => (isTicked ? [...ticks.values()] : values);
  const form = targetForm({
    label: isTicked ? tickedWords() : told`What ${column()} should be wherever it is ${plain(values[0].value)}`,
    value: target, name: `Set ${counted(sum(chosen().map(({ count }) => count)), "cell")}`,
    save: (text, insist) => replace(chosen(), text, insist),
    onCancel: () => { if (isTicked) ticks.clear(); form.form.remove(); if (isTicked) guarded(redraw()); },
  });
  place.append(form.form);
  if (!isTicked) form.focus();
}

// Replace values, each with the count of its cells; those that somebody called right stay.
async function replace(values, repair, insist) {
  const others = values.filter(({ value }) => value !== repair);
  const count = sum(others.map((each) => each.count));
  const edit = { column: column(), values: others.map(({ value }) => value), repair };
  await deliver("replace", { edits: [edit], count, insist }, `${counted(count, "cell")} of ${edit.column}`, ({ cells }) => [
    ...told`Set ${counted(cells, "cell")} of ${edit.column} to ${plain(repair)}.`, ...(cells < count ? [` ${counted(count - cells, "cell")} that you called right stay.`] : [])]);
}

async function deliver(name, deed, what, words) {
  await outbox.post({ name, deed, what, about: "values", cell: null, words, isStep: true, isAwaited: true });
  ticks.clear();
  await redrawInPlace();
}

// As many values as before, at the same place of the page.
async function redrawInPlace() {
  const [before, top] = [shownValues, byId("main").scrollTop];
  await redraw();
  while (way === "all" && shownValues < before && list.querySelector(".more")) await drawAll(shownValues);
  byId("main").scrollTop = top;
}

// ---------------------------------------------------------------- spellings

async function drawSpellings(byItself = false) {
  const turn = (asked += 1);
  const found = await ask("clusters", { column: column() });
  if (turn !== asked || (byItself && isTyping())) return;
  version = found.version;
  byId("values-listed").textContent = found.total ? `${counted(found.total, "cluster")} of values that may be the same` : "No two values look like spellings of the same thing.";
  const rest = found.total - found.clusters.length;
  list.replaceChildren(...found.clusters.map(clusterItem), ...(rest ? [el("li", { className: "more" }, `${counted(rest, "more cluster")} after these`)] : []));
}

function clusterItem({ target, spellings }) {
  const key = spellings[0].value;
  const out = unticked.get(key) ?? new Set();
  unticked.set(key, out);
  const chosen = () => spellings.filter(({ value }) => !out.has(value) && value !== form.input.value);
  const form = targetForm({
    label: told`What ${column()} should be in all of them`, value: typedTargets.get(key) ?? target, name: "Set",
    save: (text, insist) => replace(chosen(), text, insist),
  });
  const say = () => { form.form.querySelector("button").textContent = `Set ${counted(sum(chosen().map(({ count }) => count)), "cell")}`; };
  form.input.addEventListener("input", () => { typedTargets.set(key, form.input.value); say(); });
  const items = spellings.map(({ value, count, why }) => {
    const box = el("input", { type: "checkbox", checked: !out.has(value), onchange: () => { if (box.checked) out.delete(value); else out.add(value); say(); } });
    return el("li", {}, el("label", {}, box, el("span", { className: "text" }, shown(value))), " ", el("small", {}, `${counted(count, "cell")}${why ? `; ${why}` : ""}`));
  });
  say();
  return el("li", { className: "cluster" }, el("ul", {}, ...items), form.form);
}

// ---------------------------------------------------------------- one rewriting of all values

const asRewriting = () => {
  const { find, put, is_pattern: pattern, into } = rewriting.elements;
  return { column: column(), find: find.value, put: put.value, is_pattern: pattern.checked, into: into.value };
};

async function drawRewriting() {
  const turn = (asked += 1);
  chooseFrom(rewriting.elements.into, state.columns.filter(({ name }) => name !== column()).map(({ name }) => [name, `${name}, where it is empty`]), "the same column");
  const wanted = asRewriting();
  const button = rewriting.querySelector("button");
  button.disabled = true;
  list.replaceChildren();
  byId("values-listed").textContent = wanted.find ? "" : "Type what to find: in each value of the column it is replaced.";
  if (!wanted.find) return;
  const found = await ask("preview", wanted).catch((error) => ({ error, cells: 0, values: 0, changes: [] }));
  if (turn !== asked) return;
  button.disabled = !found.cells;
  button.textContent = `Replace in ${counted(found.cells, "cell")}`;
  button.onclick = () => guarded(rewrite(wanted, found.cells));
  byId("values-listed").textContent = found.error ? found.error.message : `${counted(found.values, "value")} in ${counted(found.cells, "cell")} would change`;
  list.replaceChildren(...found.changes.map(changeItem));
}

const changeItem = ({ value, repair, count }) =>
  el("li", { className: "value" }, el("span", { className: "found" }, shown(value)), " → ", el("span", { className: "meant" }, shown(repair)), " ", el("small", {}, counted(count, "cell")));

async function rewrite(wanted, count) {
  const name = wanted.into || wanted.column;
  await deliver("transform", { ...wanted, count }, `${counted(count, "cell")} of ${name}`, ({ cells }) => told`Set ${counted(cells, "cell")} of ${name}.`);
}

async function offerPlain() {
  const wanted = { column: column(), find: "", put: "", is_pattern: false, into: "" };
  const found = await ask("preview", wanted);
  const go = el("button", { type: "button", className: "accept", onclick: () => { byId("dialog").close(); guarded(rewrite(wanted, found.cells)); } }, `Set ${counted(found.cells, "cell")}`);
  const rest = found.values - found.changes.length;
  openDialog(told`Values of ${column()} without units and words for “missing”`, el("ol", { className: "listed", tabIndex: 0, "aria-label": "What changes" }, ...found.changes.map(changeItem)),
    rest ? el("p", {}, `and ${counted(rest, "more value")}`) : null, el("p", {}, "One undo takes all back."), el("div", { className: "ways" }, go));
  go.focus();
}

// ---------------------------------------------------------------- the view

// Is something being typed that a redraw would take away?
function isTyping() {
  const forms = "#value-list form, #ticked-values form, #rewriting:not([hidden])";
  return way === "spellings" ? list.contains(document.activeElement) : byId("values").querySelector(forms) !== null;
}

// Draw what is asked for; if nobody asked for that (`byItself`), never in place of what is being typed.
async function redraw(byItself = false) {
  for (const each of WAYS) byId(`way-${each}`).setAttribute("aria-pressed", each === way ? "true" : "false");
  filters.elements.text.closest("label").hidden = way !== "all";
  rewriting.hidden = way !== "rewrite";
  if (way !== "all") byId("plain").hidden = byId("ticked-values").hidden = true;
  try {
    await { all: () => drawAll(0, byItself), spellings: () => drawSpellings(byItself), rewrite: drawRewriting }[way]();
  } finally {
    list.inert = false;
  }
}

// Open the values of a column; without a name, of the one that was looked at.
export async function open(name = column()) {
  const entries = state.columns.map((each) => [each.name, each.flagged ? `${each.name} (${number(each.flagged)})` : each.name]);
  filters.elements.column.replaceChildren(...entries.map(([value, words]) => el("option", { value }, words)));
  const flagged = [...state.columns].sort((one, other) => other.flagged - one.flagged)[0];
  filters.elements.column.value = name || flagged.name;
  await redraw();
}

export async function look() {
  if (version !== state.version && !isTyping()) await redraw(true);
}

export async function undo({ answered }) {
  await answered;
  await redrawInPlace();
}

let typing = null;
function redrawSoon(event) {
  clearTimeout(typing);
  list.inert = true; // it is about what was asked for before
  if (event.target.name === "column") for (const kept of [ticks, typedTargets, unticked]) kept.clear();
  byId("ticked-values").replaceChildren();
  typing = setTimeout(() => guarded(redraw()), 150);
}

filters.addEventListener("input", redrawSoon);
rewriting.addEventListener("input", redrawSoon);
for (const form of [filters, rewriting]) form.addEventListener("submit", (event) => event.preventDefault());
for (const each of WAYS) byId(`way-${each}`).addEventListener("click", () => { way = each; guarded(redraw()); });
byId("plain").querySelector("button").addEventListener("click", () => guarded(offerPlain()));
