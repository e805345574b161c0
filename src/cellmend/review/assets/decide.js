// The queue: the best questions first, then the flagged cells, one after another.
import { ask } from "./api.js";
import { Card } from "./card.js";
import { chart } from "./chart.js";
import { byId, el, number, notify, plain, shown } from "./dom.js";
import { state } from "./state.js";

const AHEAD = 7;

const card = new Card(byId("card"), { decided: () => next(true), skipped: () => next(true) });
let upcoming = [];
let turns = 0; // how often something was shown: what was asked for before the last time comes too late

export const press = (event) => card.press(event);
export const isBusy = () => card.editing !== null;

// Show the first cell of the queue; with `hasActed` it becomes the focus, as what was there is gone.
export async function next(hasActed = false) {
  turns += 1;
  const turn = turns;
  const found = (await ask("queue", { count: AHEAD })).cells;
  if (turn !== turns) return;
  upcoming = found;
  drawUpcoming();
  if (!upcoming.length) return finished();
  await show(upcoming[0].flag);
  if (hasActed && card.cell) {
    card.place.focus({ preventScroll: true });
    card.speak();
  }
}

// Somebody decided elsewhere: go on only if this cell is no longer open.
export async function look() {
  const here = card.cell?.flag;
  const turn = turns;
  const found = (await ask("queue", { count: AHEAD })).cells;
  if (turn !== turns) return;
  upcoming = found;
  drawUpcoming();
  const isOpen = here && upcoming.some(({ flag }) => flag.row === here.row && flag.column === here.column);
  if (isBusy()) return;
  if (!isOpen) await next();
  else await show(here);
}

async function show({ row, column }) {
  turns += 1;
  const cell = await card.show({ row, column });
  if (!cell) return;
  drawRow(cell);
  const { picture } = await ask("picture", { row, column, repair: cell.flag.repair });
  if (card.cell === cell) byId("chart").replaceChildren(chart(picture));
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
  card.editing = null;
  await show(flag).catch((error) => notify(error.message, true));
  card.place.focus();
}
