// Learning from the decisions: what it needs, how far it is, what it changed, and the way back.
import { ask } from "./api.js";
import { apart, byId, counted, el, notify, number, openDialog, plain, told } from "./dom.js";
import * as outbox from "./outbox.js";
import { onChange, state } from "./state.js";

const ENOUGH = 20; // decisions: fewer change little
const CHANGES = ["found", "dropped", "repaired otherwise"];

let showCell = () => {};
let begun = () => {};

// `show(cell)` shows a cell of which learning changed something; `begin()` is called when the model is at work.
export function onLearning({ show, begin }) {
  showCell = show;
  begun = begin;
}

const guarded = (work) => work.catch((error) => notify(error.message, true));

// ---------------------------------------------------------------- what it needs

export async function open() {
  await outbox.settled();
  const { now, history } = await ask("learnings");
  const learn = el("button", { type: "button", className: "accept", disabled: !now.decisions && !now.wishes, onclick: () => begin("learn") }, "Learn now");
  openDialog("Learn from my decisions",
    el("p", {}, "The model judges all other cells anew by what you decided. It finds cells that are wrong alike, drops flags like those that you rejected, and repairs as you did. What you decided stays."),
    el("ul", { className: "needs" }, ...needs(now, history.at(-1)).map(([isMet, words]) => el("li", { className: isMet ? "met" : "" }, words))),
    el("div", { className: "ways" }, learn),
    ...past(history));
  learn.focus();
}

// What learning needs, and whether it is there.
function needs({ decisions, right, wrong, repairs, columns, wishes }, last) {
  const since = decisions - (last?.decisions ?? 0);
  return [
    [right > 0 && wrong > 0, `Both kinds of decisions: ${counted(wrong, "cell")} wrong (${number(repairs)} with a repair), ${number(right)} right. Before there are both, only cells with the same value follow.`],
    [decisions >= ENOUGH, `Some ${ENOUGH} decisions: ${number(decisions)} so far. A handful changes little.`],
    [columns > 0, `Decisions in the columns that matter: ${number(columns)} of ${number(state.columns.length)} so far. Nothing changes in a column without one, and flags fall only where you rejected one.`],
    ...(wishes ? [[true, `${counted(wishes, "change")} of rules and kinds of columns ${wishes === 1 ? "counts" : "count"}, too.`]] : []),
    ...(last && since > 0 ? [[true, `${counted(since, "decision")} since it was last learned.`]] : []),
  ];
}

function past(history) {
  if (!history.length) return [];
  const lines = history.toReversed().map((each, place) => el("li", {},
    el("p", {}, el("b", {}, each.when ? `${each.when} UTC` : `Learning ${each.number}`), each.decisions === undefined ? "" : `: from ${counted(each.decisions, "decision")} `, el("small", {}, summary(each.counts))),
    el("div", {}, el("button", { type: "button", className: "quietly", onclick: () => guarded(showChanges(each.number)) }, "What changed"),
      ...(place === 0 ? [undoButton()] : []))));
  return [el("h3", {}, "What was learned so far"), el("ol", { className: "history" }, ...lines)];
}

const summary = (counts) => CHANGES.map((what) => `${number(counts[what] ?? 0)} ${what}`).join(", ");

function undoButton() {
  return el("button", { type: "button", className: "quietly", onclick: () => begin("unlearn") }, "Undo this learning");
}

async function begin(name) {
  byId("dialog").close();
  try {
    const done = await outbox.post({ name, deed: {}, what: name === "learn" ? "learning" : "going back", cell: null, isAwaited: true });
    if (!done.started) notify("The model is at work; try again when it is done.");
    else notify(name === "learn" ? "Learning goes on beside your work." : "The findings before this learning come back.");
    begun();
  } catch (error) {
    notify(error.message, true);
  }
}

// ---------------------------------------------------------------- how far it is

onChange(({ learning: before }) => {
  const { is_running: isRunning, stage, done, seconds, error, runs, undone } = state.learning;
  byId("learn").disabled = !state.is_read || isRunning;
  byId("learning").hidden = !isRunning;
  byId("stage").textContent = `${stage} … ${Math.round(seconds)} s`;
  byId("learned").value = done;
  if (before?.is_running && !isRunning && error) notify(`The model stopped: ${error}`, true);
  if (isRunning && !before?.is_running) byId("changes").hidden = true;
  if (before && runs > before.runs) {
    notify("Learned from the decisions.");
    byId("changes").hidden = false;
  }
  if (before && undone > before.undone) {
    byId("changes").hidden = true;
    notify("The findings are as before this learning; your decisions stay.");
  }
});

// ---------------------------------------------------------------- what it changed

// Asked for by a button: a dialog that opens by itself would take the keys.
byId("changes").addEventListener("click", () => guarded(showChanges()));

async function showChanges(which = null) {
  byId("changes").hidden = true;
  const { counts, listed, is_last: isLast } = await ask("changes", { number: which });
  const totals = CHANGES.map((what) => el("li", {}, el("b", {}, number(counts[what] ?? 0)), ` ${what}`));
  const list = el("ol", { className: "listed", tabIndex: 0, "aria-label": "Cells that changed" }, ...listed.map(change));
  openDialog("What learning changed", el("ul", { className: "counts" }, ...totals),
    listed.length ? list : el("p", {}, "Nothing changed beyond the cells that you decided."),
    ...(isLast ? [el("div", { className: "ways" }, undoButton())] : []));
}

function change({ what, row, column, value, before, after }) {
  const repair = what === "repaired otherwise" ? told`${plain(before)} → ${plain(after)}` : what === "found" && after !== null ? told`→ ${plain(after)}` : [];
  const show = () => { byId("dialog").close(); guarded(showCell({ row, column })); };
  return el("li", {}, el("button", { type: "button", className: "quietly", onclick: show },
    el("small", {}, `${what} · row ${number(row)} · `), el("b", {}, apart(column)), " ", el("span", { className: "found" }, apart(plain(value))), " ", el("span", { className: "meant" }, ...repair)));
}
