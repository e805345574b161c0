// The table: only the rows and columns in sight exist, and rows come from the server a page at a time.
import { ask } from "./api.js";
import { Card } from "./card.js";
import { apart, byId, chooseFrom, counted, el, isTyping, notify, number, percent, plain, told } from "./dom.js";
import * as outbox from "./outbox.js";
import { state } from "./state.js";

const ROW = 30; // pixels
const TALLEST = 6_000_000; // pixels: browsers cannot scroll further; beyond it a pixel of the bar is more than one of rows
const PAGE = 100; // rows asked for at once
const KEPT_PAGES = 40;
const STATES = { accepted: "repair accepted", edited: "edited", kept: "value kept", wrong: "wrong, no repair known" };

const grid = byId("grid");
const head = el("div", { className: "head", role: "row" });
const body = el("div", { className: "rows" });
const spacer = el("div", { className: "spacer" });
const filters = byId("filters");

const pages = new Map(); // first place -> rows, or the promise of them
let total = 0;
let top = 0; // pixels of rows above what is in sight
let lefts = [0]; // where each column starts, and where the last one ends
let chosen = null; // the cell that is selected: its row, its column by place, and the place of its row in what is shown
let last = { row: -1, column: 0 }; // the one before, from which N and P go on
let held = {}; // a column and the value that it holds in all rows that are shown
let version = -1;
let isOwnScroll = false;

const panel = new Card(byId("panel"), { deliver });

// ---------------------------------------------------------------- rows from the server

const wanted = () => ({ ...Object.fromEntries([...new FormData(filters)].filter(([, value]) => value !== "" && value !== "0")), ...held });

// Some rows; and the place of row `find` among all that are shown, if it is.
async function load(start, find) {
  const found = await ask("rows", { ...wanted(), start, count: PAGE, find });
  const marks = new Map(found.marks.map((mark) => [`${mark.row} ${mark.column}`, mark]));
  const rows = found.rows.map((row, place) => ({ row, texts: found.texts[place], marks }));
  version = found.version;
  total = found.total;
  return { rows, place: found.place };
}

function rowAt(place) {
  const start = place - (place % PAGE);
  const page = pages.get(start);
  if (page === undefined) {
    if (pages.size >= KEPT_PAGES) pages.delete(pages.keys().next().value);
    const coming = load(start)
      .then(({ rows }) => { if (pages.get(start) === coming) { pages.set(start, rows); draw(); } })
      .catch((error) => { pages.delete(start); notify(error.message, true); });
    pages.set(start, coming);
  }
  return Array.isArray(page) ? page[place - start] : undefined;
}

// Ask anew for what is in sight, after a decision or with other filters.
export async function reload({ fromTop = false } = {}) {
  const start = fromTop ? 0 : Math.floor(top / ROW / PAGE) * PAGE;
  const asked = JSON.stringify(wanted());
  const before = chosen;
  const { rows, place } = await load(start, before?.row);
  if (asked !== JSON.stringify(wanted())) return;
  pages.clear();
  pages.set(start, rows);
  if (lefts.length !== state.columns.length + 1) measure(rows);
  if (fromTop) setTop(0);
  if (before && chosen?.row === before.row) {
    if (place === null) choose(null);
    else chosen.place = place;
  }
  spacer.style.height = `${Math.min(total * ROW, TALLEST)}px`;
  spacer.style.width = `${lefts.at(-1)}px`;
  head.style.width = body.style.width = `max(100%, ${lefts.at(-1)}px)`; // so that the numbers of rows stay in sight
  grid.setAttribute("aria-rowcount", total + 1);
  grid.setAttribute("aria-colcount", state.columns.length + 1);
  byId("shown").textContent = total === state.rows ? `${counted(total, "row")}` : `${number(total)} of ${counted(state.rows, "row")}`;
  draw();
}

// Columns are as wide as their names and the first rows need.
function measure(rows) {
  const widths = state.columns.map(({ name }, place) =>
    Math.max(name.length + 2, ...rows.slice(0, 50).map(({ texts }) => (texts[place] ?? "").length)));
  lefts = [76];
  for (const letters of widths) lefts.push(lefts.at(-1) + Math.min(Math.max(letters * 8 + 26, 72), 280));
}

// ---------------------------------------------------------------- drawing

const inSight = () => Math.max(Math.floor((grid.clientHeight - ROW) / ROW), 1);
const furthest = () => Math.max((total - inSight()) * ROW, 0);

function draw() {
  const first = Math.max(Math.floor(top / ROW), 0);
  const last = Math.min(first + inSight() + 2, total);
  const from = Math.max(lefts.findIndex((left) => left > grid.scrollLeft + 76) - 1, 0);
  let to = lefts.findIndex((left) => left > grid.scrollLeft + grid.clientWidth);
  to = Math.min(to < 0 ? state.columns.length : to, state.columns.length);
  head.replaceChildren(corner("row"), ...state.columns.slice(from, to).map(({ name, flagged }, at) => headCell(name, flagged, from + at)));
  const lines = [];
  for (let place = first; place < last; place += 1) lines.push(line(place, from, to));
  body.replaceChildren(...lines);
  if (chosen) grid.setAttribute("aria-activedescendant", `cell-${chosen.place}-${chosen.column}`);
  else grid.removeAttribute("aria-activedescendant");
}

function corner(text) {
  return el("div", { className: "cell corner", role: "columnheader", "aria-colindex": "1" }, text);
}

function headCell(name, flagged, column) {
  const made = el("div", { className: "cell", role: "columnheader", title: name, "aria-colindex": column + 2 }, apart(name));
  if (flagged) made.append(el("small", { title: counted(flagged, "flagged cell") }, ` ${number(flagged)}`));
  return placed(made, column);
}

function placed(cell, column) {
  cell.style.left = `${lefts[column]}px`;
  cell.style.width = `${lefts[column + 1] - lefts[column]}px`;
  return cell;
}

function line(place, from, to) {
  const row = rowAt(place);
  const made = el("div", { className: "line", role: "row", "aria-rowindex": place + 2 });
  made.style.top = `${ROW + place * ROW - top}px`;
  made.append(el("div", { className: "cell corner", role: "rowheader", "aria-colindex": "1" }, row ? number(row.row) : "…"));
  for (let column = from; column < to; column += 1) made.append(placed(bodyCell(row, place, column), column));
  return made;
}

function bodyCell(row, place, column) {
  const mark = row?.marks.get(`${row.row} ${column}`);
  const text = row?.texts[column];
  const isNew = mark && (mark.state === "accepted" || mark.state === "edited");
  const cell = el("div", {
    id: `cell-${place}-${column}`, role: "gridcell", className: `cell ${styleOf(mark)}`, "aria-colindex": column + 2,
    "aria-selected": row && row.row === chosen?.row && column === chosen.column ? "true" : "false",
    onclick: () => row && choose({ row: row.row, column, place }),
  }, row ? apart(isNew ? plain(mark.repair) : text ?? "") : "");
  if (mark) {
    cell.title = said(mark, text);
    cell.setAttribute("aria-label", `${plain(isNew ? mark.repair : text)}, ${said(mark, text)}`);
  }
  return cell;
}

function styleOf(mark) {
  if (!mark) return "";
  const shade = mark.suspicion === null ? "" : `shade-${Math.min(Math.max(Math.ceil((mark.suspicion - 0.2) * 5), 1), 4)}`;
  return mark.state === "open" ? shade : mark.state;
}

function said(mark, text) {
  if (mark.state !== "open") return `${STATES[mark.state]}; found ${plain(text)}`;
  const repair = mark.repair === null ? "" : `; proposed ${plain(mark.repair)}`;
  return `${percent(mark.suspicion)} suspicion${repair}`;
}

// ---------------------------------------------------------------- scrolling

const scale = () => (furthest() > TALLEST ? furthest() / (Math.min(total * ROW, TALLEST) - grid.clientHeight + ROW) : 1);

function setTop(pixels) {
  top = Math.min(Math.max(pixels, 0), furthest());
  const bar = top / scale();
  if (Math.abs(grid.scrollTop - bar) >= 1) {
    isOwnScroll = true;
    grid.scrollTop = bar;
  }
}

let isDrawing = false;
function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => { isDrawing = false; draw(); });
}

grid.addEventListener("scroll", () => {
  if (!isOwnScroll) top = Math.min(grid.scrollTop * scale(), furthest());
  isOwnScroll = false;
  body.style.transform = head.style.transform = `translateY(${grid.scrollTop}px)`;
  drawSoon();
});
grid.addEventListener("wheel", (event) => {
  if (scale() === 1 || event.deltaY === 0 || event.ctrlKey) return; // the browser does it
  event.preventDefault();
  setTop(top + event.deltaY * (event.deltaMode ? ROW : 1));
  drawSoon();
}, { passive: false });
new ResizeObserver(() => state.columns && !byId("table").hidden && draw()).observe(grid);

// ---------------------------------------------------------------- choosing a cell

const nameOf = ({ column }) => state.columns[column].name;

// Select a cell, or none. Until it is known nothing else is in the panel, so that no key decides about another one.
async function choose(cell) {
  chosen = cell;
  last = cell ?? last;
  byId("panel").classList.toggle("empty", !cell);
  panel.clear(el("p", { className: "quiet" }, cell ? "…" : "Choose a cell, or press N for the next flagged one."));
  if (cell) reveal();
  if (cell && getComputedStyle(panel.place).position === "fixed") grid.scrollIntoView({ block: "start" }); // above the sheet
  draw();
  if (cell) await fetchChosen().catch((error) => notify(error.message, true));
}

async function fetchChosen() {
  const here = chosen;
  const cell = await ask("cell", { row: here.row, column: nameOf(here) });
  if (chosen === here) panel.show(cell);
}

function isInSight({ place }) {
  return place * ROW >= top - ROW / 2 && place * ROW <= top + (inSight() - 0.5) * ROW;
}

function reveal() {
  const above = chosen.place * ROW;
  if (above < top) setTop(above);
  else if (above > top + (inSight() - 1) * ROW) setTop(above - (inSight() - 1) * ROW);
  const left = lefts[chosen.column] - 76;
  const right = lefts[chosen.column + 1];
  if (left < grid.scrollLeft) grid.scrollLeft = left;
  else if (right > grid.scrollLeft + grid.clientWidth) grid.scrollLeft = right - grid.clientWidth;
}

async function chooseFlagged(backwards) {
  const from = chosen ?? last;
  const found = await ask("following", { ...wanted(), row: Math.max(from.row, 0), column: from.row < 0 ? "" : nameOf(from), backwards });
  if (!found.cell) return notify(backwards ? "There is no flagged cell before this one." : "There is no flagged cell after this one.");
  await choose({ row: found.cell.row, column: state.columns.findIndex(({ name }) => name === found.cell.column), place: found.place });
}

// Show a cell again of which something was taken back.
async function chooseAgain({ row, column }) {
  last = { row, column: state.columns.findIndex(({ name }) => name === column) };
  const { place } = await load(0, row);
  await choose(place === null ? null : { ...last, place });
}

async function chooseAt(place, column) {
  const start = place - (place % PAGE);
  const rows = Array.isArray(pages.get(start)) ? pages.get(start) : (await load(start)).rows;
  if (rows[place - start]) await choose({ row: rows[place - start].row, column, place });
}

// ---------------------------------------------------------------- deeds

async function deliver(name, deed, how) {
  const here = chosen;
  panel.place.inert = true; // a second key waits for what the first one did
  try {
    await outbox.post({ name, deed, cell: panel.cell, isStep: true, ...how, isAwaited: true });
    await reload();
    if (here && chosen === here) await fetchChosen();
  } catch (error) {
    if (how.isAwaited) throw error;
    notify(error.message, true);
    if (chosen === here) await look();
  } finally {
    panel.place.inert = false;
  }
}

export async function undo({ cell, answered }) {
  await answered;
  await reload();
  await chooseAgain(cell.flag ?? cell);
}

const MOVES = {
  ArrowDown: () => [1, 0], ArrowUp: () => [-1, 0], ArrowRight: () => [0, 1], ArrowLeft: () => [0, -1],
  PageDown: () => [inSight(), 0], PageUp: () => [-inSight(), 0],
  Home: (event) => (event.ctrlKey ? [-total, 0] : [0, -state.columns.length]),
  End: (event) => (event.ctrlKey ? [total, 0] : [0, state.columns.length]),
};

grid.addEventListener("keydown", (event) => {
  const move = MOVES[event.key];
  if (move) {
    event.preventDefault();
    const [down, right] = move(event);
    const from = chosen ?? { place: Math.ceil(top / ROW) - down, column: Math.max(last.column - right, 0) }; // the first in sight
    const place = Math.min(Math.max(from.place + down, 0), total - 1);
    const column = Math.min(Math.max(from.column + right, 0), state.columns.length - 1);
    chooseAt(place, column).catch((error) => notify(error.message, true));
  } else if (event.key === "Enter") {
    byId("panel").focus();
  }
});

// Nothing is decided about a cell that is not in sight: the first key brings it there.
function decideByKey(event) {
  if (!chosen || panel.place.inert) return false;
  if (isInSight(chosen)) return panel.press(event);
  reveal();
  draw();
  notify("The chosen cell was out of sight; press the key again.");
  return true;
}

export function press(event) {
  if (isTyping(event)) return false;
  const step = { n: false, p: true }[event.key];
  if (step === undefined) return decideByKey(event);
  event.preventDefault();
  chooseFlagged(step).catch((error) => notify(error.message, true));
  return true;
}

// ---------------------------------------------------------------- the view

export async function look() {
  if (version !== state.version) await reload();
  const here = panel.cell;
  if (!here) return;
  const now = await ask("cell", panel.where);
  if (panel.cell === here) panel.tellNews(now, ["Show", () => panel.show(now)]);
}

export async function open() {
  const names = state.columns.map(({ name, flagged }) => [name, flagged ? `${name} (${number(flagged)})` : name]);
  chooseFrom(filters.elements.only, names);
  chooseFrom(filters.elements.cause, state.causes.map((cause) => [cause, cause]));
  chooseFrom(filters.elements.rule, state.rules.map(({ rule, broken }) => [rule, `${rule} (${number(broken)})`]));
  if (!grid.contains(spacer)) {
    grid.append(spacer, head, body);
  }
  await reload();
  await choose(chosen);
}

// Show the rows in which a column holds a value, until somebody has seen enough of them.
export async function showHolding(column, value) {
  filters.reset();
  hold(column, value);
  await reload({ fromTop: true });
}

// Show the rows that break a rule, and nothing else.
export async function showBreaking(rule) {
  filters.reset();
  hold("", "");
  filters.elements.rule.value = rule;
  await choose(null);
  await reload({ fromTop: true });
  grid.focus();
}

function hold(column, value) {
  held = column ? { within: column, holds: value } : {};
  byId("held").replaceChildren(...told`${column} is ${plain(value)} ×`);
  byId("held").hidden = !column;
}

byId("held").addEventListener("click", () => showHolding("", "").catch((error) => notify(error.message, true)));

let typing = null;
filters.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => reload({ fromTop: true }).catch((error) => notify(error.message, true)), 150);
});
filters.addEventListener("submit", (event) => event.preventDefault());
