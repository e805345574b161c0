// The queue: the best questions first, then the flagged cells, one after another.
import { ask } from "./api.js";
import { Card } from "./card.js";
import { chart } from "./chart.js";
import { byId, el, number, notify, plain, shown } from "./dom.js";
import { state } from "./state.js";

const AHEAD = 7;

const card = new Card(byId("card"), { decided: () => next(true), skipped: () => next(true) });
let upcoming = [];
let turns = 0; // how often somebody went on: what was asked for before the last time comes too late
let isUntouched = true; // has nobody done anything yet?

export function press(event) {
  const isTaken = card.press(event);
  isUntouched &&= !isTaken;
  return isTaken;
}

// Show the first cell of the queue; with `hasActed` it becomes the focus, as what was there is gone.
export async function next(hasActed = false) {
  turns += 1;
  if (!(await askQueue(turns))) return;
  if (!upcoming.length) return finished();
  await show(upcoming[0].flag);
  if (hasActed && card.cell) {
    card.place.focus({ preventScroll: true });
    card.speak();
  }
}

async function askQueue(turn) {
  const found = (await ask("queue", { count: AHEAD })).cells;
  if (turn !== turns) return false;
  upcoming = found;
  drawUpcoming();
  return true;
}

// Something is new, by another tab or by learning: the cell stays unless it was decided or nobody has begun yet.
export async function look() {
  const here = card.cell?.flag;
  if (!(await askQueue(turns)) || card.editing !== null) return;
  if (!here || (isUntouched && upcoming.length)) return upcoming.length ? show(upcoming[0].flag, { byItself: true }) : finished();
  const cell = await show(here, { byItself: true });
  if (cell?.decision) await next();
}

async function show({ row, column }, how = {}) {
  const cell = await card.show({ row, column }, how);
  if (!cell) return null;
  drawRow(cell);
  const { picture } = await ask("picture", { row, column, repair: cell.flag.repair });
  if (card.cell === cell) byId("chart").replaceChildren(chart(picture));
  return cell;
}

function finished() {
  const decided = number(Object.values(state.tally ?? {}).reduce((sum, own) => sum + own, 0) - (state.tally?.open ?? 0));
  card.clear(
    el("h3", {}, "Nothing is open"),
    el("p", {}, `${decided} decisions are saved. Learn from them to see what else they tell, look through the table, or export.`),
  );
  byId("chart").replaceChildren();
  byId("row").replaceChildren();
}

function drawRow({ row: texts, marks, flag }) {
  const marked = new Map(marks.map((mark) => [mark.column, mark]));
  const lines = state.columns.map(({ name }, place) => {
    const mark = marked.get(place);
    const style = name === flag.column ? "here" : mark ? `flagged ${mark.state}` : "";
    const said = mark && mark.repair !== null && mark.state !== "kept" ? [" ", el("small", {}, `→ ${plain(mark.repair)}`)] : [];
    return el("div", { className: style }, el("dt", {}, name), el("dd", {}, shown(texts[place]), ...said));
  });
  byId("row").replaceChildren(...lines);
}

function drawUpcoming() {
  const rest = upcoming.slice(1).map(({ flag, is_question: isQuestion }) =>
    el("li", {}, el("button", { type: "button", className: "quietly", onclick: () => choose(flag) },
      el("b", {}, flag.column), ` ${plain(flag.value)}`, el("small", {}, ` row ${number(flag.row)}${isQuestion ? " · question" : ""}`))));
  byId("next").replaceChildren(...rest);
}

async function choose(flag) {
  turns += 1;
  isUntouched = false;
  card.editing = null;
  await show(flag).catch((error) => notify(error.message, true));
  card.place.focus();
}
