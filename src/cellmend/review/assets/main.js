// The page: its views, what stands above all of them, and the keys.
import { ask, download, tell } from "./api.js";
import * as columns from "./columns.js";
import * as decide from "./decide.js";
import { byId, counted, el, isTyping, notify, number, openDialog, plain } from "./dom.js";
import { onChange, readState, refresh, state } from "./state.js";
import * as table from "./table.js";

const VIEWS = ["decide", "table", "columns"];
const PULSE = 2000; // milliseconds between looks at what others did
const QUICK_PULSE = 400; // while something is learned
const KEYS = [
  ["A", "accept the proposed repair"], ["R", "the value is right: keep it"], ["E", "edit: type what it should be"],
  ["W", "wrong, but not known what it should be"], ["S", "skip: asked again at the end"], ["B", "decide about all like this one"],
  ["U", "undo the last step"], ["L", "learn from the decisions"], ["1 2 3", "Decide, Table, Columns"],
  ["N P", "in the table: next and previous flagged cell"], ["← ↑ → ↓", "in the table: move; Enter goes to the cell's card"],
];

let view = "decide";

// ---------------------------------------------------------------- views

async function open(name) {
  view = name;
  for (const each of VIEWS) byId(each).hidden = each !== name;
  for (const button of document.querySelectorAll(".view")) {
    if (button.dataset.view === name) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  if (name === "decide") await decide.next();
  else await { table, columns }[name].open();
}

const guarded = (work) => work.catch((error) => notify(error.message, true));

for (const button of document.querySelectorAll(".view")) button.addEventListener("click", () => guarded(open(button.dataset.view)));

// ---------------------------------------------------------------- above all views

onChange((before) => {
  const { open: left, ...decided } = state.tally;
  const done = Object.values(decided).reduce((sum, own) => sum + own, 0);
  byId("name").textContent = state.table ?? "";
  document.title = `${state.table}: review`;
  Object.assign(byId("decided"), { max: Math.max(left + done, 1), value: done });
  byId("decided-words").textContent = `${number(done)} decided, ${number(left)} open`;
  byId("undo").disabled = state.undo === null;
  byId("undo").title = state.undo ? `Undo: ${state.undo.what}` : "";
  byId("learn").disabled = !state.is_read || state.learning.is_running;
  drawLearning(before.learning);
});

function drawLearning(before) {
  const { is_running: isRunning, stage, done, seconds, error, runs } = state.learning;
  byId("learning").hidden = !isRunning;
  byId("stage").textContent = `${stage} … ${Math.round(seconds)} s`;
  byId("learned").value = done;
  if (before?.is_running && !isRunning && error) notify(`The model stopped: ${error}`, true);
  if (before && runs > before.runs) guarded(showChanges());
}

async function showChanges() {
  const { counts, listed } = await ask("changes");
  await readState();
  notify("Learned from the decisions.");
  const words = { found: "found", dropped: "dropped", "repaired otherwise": "repaired otherwise" };
  const summary = Object.entries(words).map(([key, word]) => el("li", {}, el("b", {}, number(counts[key] ?? 0)), ` ${word}`));
  const list = el("ol", { className: "listed", tabIndex: 0, "aria-label": "Cells that changed" }, ...listed.map(changeLine));
  openDialog("What learning changed", el("ul", { className: "counts" }, ...summary),
    listed.length ? list : el("p", {}, "Nothing changed beyond the cells that you decided."));
}

function changeLine({ what, row, column, value, before, after }) {
  const repair = what === "repaired otherwise" ? `${plain(before)} → ${plain(after)}` : what === "found" && after !== null ? `→ ${plain(after)}` : "";
  return el("li", {}, el("small", {}, `${what} · row ${number(row)} · `), el("b", {}, column), " ", el("span", { className: "found" }, plain(value)), " ", el("span", { className: "meant" }, repair));
}

async function undo() {
  if (!state.undo) return notify("There is nothing to undo.");
  const { what, step } = state.undo;
  const done = await tell("undo", { step });
  notify(done.undone ? `Undone: ${what}.` : "Another tab has changed something meanwhile; nothing was undone.", !done.undone);
  refresh(done);
  return view === "decide" ? decide.next(true) : table.look();
}

async function learn() {
  const done = await tell("learn");
  notify(done.started ? "Learning goes on beside your work." : "The model is at work; try again when it is done.");
  refresh(done);
  pulseSoon(QUICK_PULSE);
}

async function exportAll() {
  const done = await tell("export");
  const lines = Object.entries({
    table: "the table with accepted repairs only; everything else as it was",
    patch: "the repairs, for cellmend apply on a newer copy",
    decisions: "all decisions, for cellmend clean --decisions",
  }).map(([what, words]) => el("li", {}, el("b", {}, done.files[what]), ` ${words} `,
    el("button", { type: "button", onclick: () => guarded(download(what, done.files[what])) }, "Download")));
  openDialog(`Exported ${counted(done.fixes, "repair")}`, el("p", {}, `Written to ${done.folder}:`), el("ul", { className: "files" }, ...lines));
}

function showKeys() {
  openDialog("Keys", el("dl", { className: "keys" }, ...KEYS.map(([key, words]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)))));
}

byId("undo").addEventListener("click", () => guarded(undo()));
byId("learn").addEventListener("click", () => guarded(learn()));
byId("export").addEventListener("click", () => guarded(exportAll()));
byId("help").addEventListener("click", showKeys);

document.addEventListener("keydown", (event) => {
  if (isTyping(event) || byId("dialog").open) return;
  const others = { u: undo, l: learn, 1: () => open("decide"), 2: () => open("table"), 3: () => open("columns") };
  const other = others[event.key.toLowerCase()];
  if (other && !event.repeat) {
    event.preventDefault();
    guarded(other());
  } else if (event.key === "?") showKeys();
  else if (view !== "columns") (view === "decide" ? decide : table).press(event);
});

// ---------------------------------------------------------------- what others did meanwhile

let timer = null;
function pulseSoon(wait) {
  clearTimeout(timer);
  timer = setTimeout(pulse, wait);
}

async function pulse() {
  try {
    if (!document.hidden) {
      const before = { version: state.version, isRead: state.is_read, runs: state.learning.runs };
      refresh(await ask("pulse"));
      const isNews = state.version !== before.version || state.is_read !== before.isRead;
      if (isNews) {
        await readState();
        await { decide, table, columns }[view].look();
      }
    }
  } catch (error) {
    notify(error.message, true);
  }
  pulseSoon(state.learning?.is_running ? QUICK_PULSE : PULSE);
}

document.addEventListener("visibilitychange", () => document.hidden || pulseSoon(0));

await guarded(readState().then(() => open("decide")));
document.documentElement.dataset.ready = "yes";
pulseSoon(QUICK_PULSE);
