// Which cells are asked about one after another: those that fit the filters, or the questions that the model offers.
import { byId, counted, el, number } from "./dom.js";
import { onChange, state } from "./state.js";

const OFFERED = 5; // questions at a time

const form = byId("narrow");
const listeners = [];
let left = 0; // of the questions that were taken up
let chosen = {}; // what is asked for: a new object whenever that changes

export const onNarrow = (listener) => listeners.push(listener);
export const narrowed = () => chosen;

function choose(wanted) {
  chosen = wanted;
  for (const listener of listeners) listener();
}

const filters = () => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));

// ---------------------------------------------------------------- filters

form.addEventListener("input", () => choose(filters()));
form.addEventListener("submit", (event) => event.preventDefault());

export function drawFilters() {
  options(form.elements.only, state.columns.filter(({ flagged }) => flagged).map(({ name, flagged }) => [name, `${name} (${number(flagged)})`]));
  options(form.elements.cause, state.causes.map((cause) => [cause, cause]));
}

function options(select, entries) {
  const before = select.value;
  select.replaceChildren(el("option", { value: "" }, "any"), ...entries.map(([value, words]) => el("option", { value }, words)));
  if (before && select.value !== before) select.append(el("option", { value: before }, before)); // what was chosen stays
  select.value = before;
}

// ---------------------------------------------------------------- questions

onChange(drawOffer);

function drawOffer() {
  const { count, speaks_for: speaksFor } = state.questions;
  const few = Math.min(count, OFFERED);
  byId("offer").inert = !count && !left; // its room is kept
  byId("ask").hidden = left > 0;
  byId("ask").textContent = `${counted(few, "question")}, one minute`;
  byId("leave").hidden = left === 0;
  byId("asked-for").textContent = left
    ? `${counted(left, "question")} to go. Then learn: the answers speak for other cells, too.`
    : `Cells that are like many others: the answers to all ${number(count)} speak for ${counted(speaksFor, "other cell")} when you learn.`;
}

byId("ask").addEventListener("click", () => {
  left = Math.min(state.questions.count, OFFERED);
  form.inert = true;
  drawOffer();
  choose({ questions: true });
});

function leave() {
  left = 0;
  form.inert = false;
  drawOffer();
  choose(filters());
}

byId("leave").addEventListener("click", leave);

// A question was answered, or skipped: true if that was the last one.
export function answered() {
  if (!left) return false;
  left -= 1;
  drawOffer();
  return left === 0;
}

// What stands in the card when nothing that is asked for is left; none if nothing was narrowed down.
export function finished() {
  if (chosen.questions) {
    return [el("h3", {}, "Thank you"), el("p", {}, "Learn now to let your answers speak for other cells, or go on with the flagged ones."),
      el("div", { className: "ways" }, el("button", { type: "button", className: "accept", onclick: () => byId("learn").click() }, "Learn from my decisions"),
        el("button", { type: "button", onclick: leave }, "Go on with the flagged cells"))];
  }
  if (!Object.keys(chosen).length) return null;
  const all = () => { form.reset(); choose({}); };
  return [el("h3", {}, "Nothing that is open fits the filters"), el("div", { className: "ways" }, el("button", { type: "button", onclick: all }, "Show all open cells"))];
}
