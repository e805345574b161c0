// The table: only the rows and columns in sight exist, and rows come from the server a page at a time.
import { ask } from "./api.js";
import { Card } from "./card.js";
import { byId, counted, el, isTyping, notify, number, percent, plain } from "./dom.js";
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
let active = { place: 0, column: 0 };
let version = -1;
let isOwnScroll = false;

const panel = new Card(byId("panel"), { decided: async () => { await reload(); await panel.show(here()); } });

// ---------------------------------------------------------------- rows from the server

const wanted = () => Object.fromEntries([...new FormData(filters)].filter(([, value]) => value !== "" && value !== "0"));

async function load(start) {
  const found = await ask("rows", { ...wanted(), start, count: PAGE });
  const marks = new Map(found.marks.map((mark) => [`${mark.row} ${mark.column}`, mark]));
  const rows = found.rows.map((row, place) => ({ row, texts: found.texts[place], marks }));
  version = found.version;
  total = found.total;
  return rows;
}

function rowAt(place) {
  const start = place - (place % PAGE);
  const page = pages.get(start);
  if (page === undefined) {
    if (pages.size >= KEPT_PAGES) pages.delete(pages.keys().next().value);
    const coming = load(start)
      .then((rows) => { if (pages.get(start) === coming) { pages.set(start, rows); draw(); } })
      .catch((error) => { pages.delete(start); notify(error.message, true); });
    pages.set(start, coming);
  }
  return Array.isArray(page) ? page[place - start] : undefined;
}

// Ask anew for what is in sight, after a decision or with other filters.
export async function reload({ fromTop = false } = {}) {
  const start = fromTop ? 0 : Math.floor(top / ROW / PAGE) * PAGE;
  const asked = JSON.stringify(wanted());
  const rows = await load(start);
  if (asked !== JSON.stringify(wanted())) return;
  pages.clear();
  pages.set(start, rows);
  if (lefts.length !== state.columns.length + 1) measure(rows);
  if (fromTop) { active = { place: 0, column: active.column }; setTop(0); }
  active.place = Math.min(active.place, Math.max(total - 1, 0));
  spacer.style.height = `${Math.min(total * ROW, TALLEST)}px`;
  spacer.style.width = `${lefts.at(-1)}px`;
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
  grid.setAttribute("aria-activedescendant", `cell-${active.place}-${active.column}`);
}

function corner(text) {
  return el("div", { className: "cell corner", role: "columnheader", "aria-colindex": "1" }, text);
}

function headCell(name, flagged, column) {
  const made = el("div", { className: "cell", role: "columnheader", title: name, "aria-colindex": column + 2 }, name);
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
    "aria-selected": place === active.place && column === active.column ? "true" : "false",
    onclick: () => choose(place, column),
  }, row ? (isNew ? plain(mark.repair) : text ?? "") : "");
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

const here = () => ({ row: rowAt(active.place)?.row, column: state.columns[active.column].name });

async function choose(place, column) {
  active = { place, column };
  panel.editing = null;
  reveal();
  draw();
  if (rowAt(place)) await panel.show(here()).catch((error) => notify(error.message, true));
}

function reveal() {
  const above = active.place * ROW;
  if (above < top) setTop(above);
  else if (above > top + (inSight() - 1) * ROW) setTop(above - (inSight() - 1) * ROW);
  const left = lefts[active.column] - 76;
  const right = lefts[active.column + 1];
  if (left < grid.scrollLeft) grid.scrollLeft = left;
  else if (right > grid.scrollLeft + grid.clientWidth) grid.scrollLeft = right - grid.clientWidth;
}

async function chooseFlagged(backwards) {
  const at = rowAt(active.place);
  const found = await ask("following", { ...wanted(), row: at?.row ?? 0, column: here().column, backwards });
  if (!found.cell) return notify(backwards ? "There is no flagged cell before this one." : "There is no flagged cell after this one.");
  const column = state.columns.findIndex(({ name }) => name === found.cell.column);
  active = { place: found.place, column };
  reveal();
  await reload();
  await choose(found.place, column);
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
    const place = Math.min(Math.max(active.place + down, 0), total - 1);
    choose(place, Math.min(Math.max(active.column + right, 0), state.columns.length - 1));
  } else if (event.key === "Enter") {
    byId("panel").focus();
  }
});

export function press(event) {
  if (isTyping(event)) return false;
  const step = { n: false, p: true }[event.key];
  if (step === undefined) return panel.press(event);
  event.preventDefault();
  chooseFlagged(step).catch((error) => notify(error.message, true));
  return true;
}

// ---------------------------------------------------------------- the view

export async function look() {
  if (version !== state.version) await reload();
  if (panel.cell) await panel.show(panel.where, { byItself: true });
}

export async function open() {
  const names = state.columns.map(({ name, flagged }) => [name, flagged ? `${name} (${number(flagged)})` : name]);
  options(filters.elements.only, names);
  options(filters.elements.cause, state.causes.map((cause) => [cause, cause]));
  if (!grid.contains(spacer)) {
    grid.append(spacer, head, body);
    panel.clear(el("p", { className: "quiet" }, "Choose a cell, or press N for the next flagged one."));
  }
  await reload();
}

function options(select, entries) {
  const chosen = select.value;
  select.replaceChildren(el("option", { value: "" }, "any"), ...entries.map(([value, words]) => el("option", { value }, words)));
  select.value = chosen;
}

let typing = null;
filters.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => reload({ fromTop: true }).catch((error) => notify(error.message, true)), 150);
});
filters.addEventListener("submit", (event) => event.preventDefault());
