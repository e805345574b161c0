// The queue: flagged cells, or the questions that the model offers, one after another. Whole cards are fetched ahead, so that a
// key shows the next one at once; what it decided is on its way meanwhile.
import { ask } from "./api.js";
import { Card, isOtherwise } from "./card.js";
import { chart } from "./chart.js";
import { apart, byId, counted, el, notify, number, plain, shown } from "./dom.js";
import * as narrow from "./narrow.js";
import * as outbox from "./outbox.js";
import { state } from "./state.js";
import { witnesses } from "./witnesses.js";

const AHEAD = 20; // cards
const LISTED = 6; // of them are named below

const card = new Card(byId("card"), { deliver, skip });
const acknowledged = new Map(); // the version of the review in which what was done about a cell counts
let ahead = [];
let newest = 0; // the version of the review from which on an answer knows what was decided about many cells at once
let turns = 0; // how often a certain cell was asked for: the last one counts
let isWaiting = true; // is nothing shown because what is next is on its way?
let wanted = null; // the cell that is shown then, if it is there

export const press = (event) => card.press(event);
export const isEmpty = () => isWaiting;

// ---------------------------------------------------------------- one card after another

// Show the queue, and the cell that was shown before if it is still open.
export async function open() {
  narrow.drawFilters();
  wanted = card.key;
  wait();
  await fill();
}

function show(cell) {
  isWaiting = false;
  wanted = null;
  card.show(cell);
  drawRow(cell);
  byId("witnesses").replaceChildren(...witnesses(cell));
  byId("chart").replaceChildren(chart(cell.picture));
  byId("chart").parentElement.hidden = cell.picture?.kind === "none";
  drawUpcoming();
}

// Another part of the queue is asked for: it begins anew.
narrow.onNarrow(() => {
  ahead = [];
  wait();
  fill();
});

function goOn() {
  if (narrow.answered()) finished();
  else if (ahead.length) show(ahead.shift());
  else wait();
  fill();
  if (card.cell) card.focus();
}

// Show another cell than the one that is next; that one follows.
function putFirst(cell) {
  const here = card.cell;
  const isUntouched = here && !here.decision && !outbox.isPending(card.key) && !acknowledged.has(card.key);
  ahead = [...(isUntouched ? [here] : []), ...ahead].filter((each) => outbox.keyOf(each.flag) !== outbox.keyOf(cell.flag));
  show(cell);
  card.focus();
}

function wait() {
  isWaiting = true;
  card.clear(el("p", { className: "quiet" }, "The next cell is on its way …"));
  drawUpcoming();
}

// ---------------------------------------------------------------- what is fetched ahead

let filling = null;
let isOutdated = false;

function fill() {
  isOutdated = true;
  filling ??= refill().catch((error) => notify(error.message, true)).finally(() => { filling = null; });
  return filling;
}

async function refill() {
  while (isOutdated) {
    isOutdated = false;
    const asked = narrow.narrowed();
    const found = await ask("queue", { count: AHEAD + outbox.count(), ...asked });
    if (found.version < newest || asked !== narrow.narrowed()) {
      isOutdated = true;
      continue;
    }
    ahead = found.cells.filter((cell) => isOpen(outbox.keyOf(cell.flag), found.version));
    if (isWaiting) stopWaiting();
  }
}

// Is a cell of an answer still to be decided? What was done since it was answered is known only here.
const isOpen = (key, version) => key !== card.key && !outbox.isPending(key) && !(acknowledged.get(key) > version);

function stopWaiting() {
  const [cell] = ahead.splice(Math.max(ahead.findIndex((each) => outbox.keyOf(each.flag) === wanted), 0), 1);
  if (cell) show(cell);
  else if (!outbox.count()) finished();
}

outbox.on("acknowledged", ({ name, cell, answer }) => {
  if (!answer.version) return;
  if (cell) acknowledged.set(outbox.keyOf(cell.flag), answer.version);
  if (!cell || ["bulk", "repeat"].includes(name)) newest = answer.version;
  if (!byId("decide").hidden) fill();
});

// Something is new, by another tab or by learning: it counts for the cells that follow, and is told of the one shown.
export async function look() {
  const here = card.cell;
  await fill();
  if (!here) return ahead.length && !isWaiting && !card.cell ? offerMore() : null;
  const now = await ask("cell", card.where);
  if (card.cell !== here) return null;
  const isDecided = now.decision && isOtherwise(now.decision, here.decision);
  return card.tellNews(now, isDecided ? ["Go on", goOn] : ["Show", () => { show(now); card.focus(); }]);
}

// ---------------------------------------------------------------- deeds

async function deliver(name, deed, how) {
  const here = card.cell;
  const answered = outbox.post({ name, deed, cell: here, isStep: true, ...how });
  if (!how.isAwaited) goOn();
  else await goOnAfter(answered, here, name);
}

async function goOnAfter(answered, here, name) {
  await answered;
  const now = name === "withdraw" ? await ask("cell", here.flag) : null;
  if (card.cell !== here) return;
  if (now) show(now);
  else if (name === "decide") goOn();
  else await open(); // of those that follow some may be decided now
}

function skip() {
  if (!card.cell.decision) outbox.post({ name: "skip", deed: card.where, what: card.name, cell: card.cell });
  goOn();
}

// Show again what could not be saved.
export const bringBack = (cell) => putFirst(cell);

// Show a cell as it is known by now.
export const bringBackAnew = ({ row, column }) => showOnce(ask("cell", { row, column }));

// Show a certain cell once it is there; until then there is none, so that no key is about another one.
async function showOnce(coming) {
  const here = card.cell;
  const turn = (turns += 1);
  wait();
  isWaiting = false;
  const cell = await coming.catch((error) => {
    isWaiting = !card.cell;
    fill();
    throw error;
  });
  if (turn !== turns || card.cell) return;
  if (here) ahead.unshift(here);
  putFirst(cell);
  fill();
}

// What was taken back here is shown at once; of before this page was opened, once it is known.
export async function undo({ cell, answered }) {
  if (cell.flag) return putFirst(cell);
  return showOnce(answered.then(() => ask("cell", cell)));
}

// ---------------------------------------------------------------- beside the card

function finished() {
  isWaiting = false;
  const { open: left, ...decided } = state.tally;
  const done = Object.values(decided).reduce((sum, own) => sum + own, 0);
  const instead = narrow.finished();
  const ways = [
    ["learn", "Learn from my decisions", "see what else they tell: cells found, dropped, and repaired otherwise"],
    ["show-table", "Look through the table", "decide about any cell, also one that is not flagged"],
    ["export", "Export", "the table with your repairs, the decisions, and a patch for another copy"],
  ];
  card.clear(
    el("div", { className: "top" }, el("p", { className: "kicker" }, "Finished"), card.news),
    ...(instead ?? [
      el("h3", {}, left ? "Nothing else is asked" : done ? "Everything is decided" : "Nothing is flagged"),
      el("p", {}, `${counted(done, "decision")} ${done === 1 ? "is" : "are"} saved. What next?`),
      el("ul", { className: "ways-on" }, ...ways.map(([id, name, words]) =>
        el("li", {}, el("button", { type: "button", onclick: () => byId(id).click(), disabled: byId(id).disabled }, name), el("span", {}, ` ${words}`)))),
    ]),
  );
  card.news.replaceChildren();
  byId("witnesses").replaceChildren();
  byId("chart").replaceChildren();
  byId("row").replaceChildren();
  drawUpcoming();
}

function offerMore() {
  card.sayBeside([`${counted(ahead.length, "cell")} can be decided.`], "Show", goOn);
}

function drawRow({ row: texts, marks, flag }) {
  const marked = new Map(marks.map((mark) => [mark.column, mark]));
  const lines = state.columns.map(({ name }, place) => {
    const mark = marked.get(place);
    const style = name === flag.column ? "here" : mark ? `flagged ${mark.state}` : "";
    const said = mark && mark.repair !== null && mark.state !== "kept" ? [" ", el("small", {}, "→ ", apart(plain(mark.repair)))] : [];
    return el("div", { className: style }, el("dt", {}, apart(name)), el("dd", {}, shown(texts[place]), ...said));
  });
  byId("row").replaceChildren(...lines);
}

function drawUpcoming() {
  const rest = ahead.slice(0, LISTED).map((cell) =>
    el("li", {}, el("button", { type: "button", className: "quietly", onclick: () => bringBackAnew(cell.flag).catch((error) => notify(error.message, true)) },
      el("b", {}, apart(cell.flag.column)), " ", apart(plain(cell.flag.value)),
      el("small", {}, ` row ${number(cell.flag.row)}${cell.is_question ? " · question" : ""}`))));
  byId("next").replaceChildren(...rest);
}
