// The page: its views, what stands above all of them, and the keys.
import { ask, download } from "./api.js";
import * as columns from "./columns.js";
import * as decide from "./decide.js";
import * as groups from "./groups.js";
import * as history from "./history.js";
import { apart, byId, counted, el, isTyping, notify, number, openDialog, told } from "./dom.js";
import * as learning from "./learning.js";
import * as same from "./same.js";
import * as outbox from "./outbox.js";
import * as rules from "./rules.js";
import { onChange, readState, refresh, state } from "./state.js";
import * as table from "./table.js";
import * as values from "./values.js";

const VIEWS = { groups, decide, table, values, columns };
const VIEW_KEYS = { g: "groups", c: "decide", t: "table", v: "values", o: "columns" }; // digits take suggestions
const PULSE = 2000; // milliseconds between looks at what others did
const QUICK_PULSE = 400; // while something is learned
const KEYS = [
  ["A", "accept the proposed repair"], ["R", "the value is right: keep it"], ["E", "edit: type what it should be"],
  ["W", "wrong, but not known what it should be"], ["S", "skip: asked again at the end"], ["B", "decide about all like this one"],
  ["H", "all steps, and back to any of them"], ["U", "undo the last step"], ["L", "learn from the decisions"], ["M", "the same for the other cells with the value that was just decided"],
  ["1 2 3 …", "take the first, second, third … of the suggestions"], ["G C T V O", "the views: Groups, Cells, Table, Values, Columns"],
  ["↑ ↓ Space", "in the groups: move, tick; A, R and E count for what is ticked, else for the line; Enter looks inside"],
  ["N P", "in the table: next and previous flagged cell"], ["← ↑ → ↓", "in the table: move; Enter goes to the cell's card"],
];

let view = "groups";

// ---------------------------------------------------------------- views

async function open(name) {
  turnTo(name);
  await VIEWS[name].open();
}

function turnTo(name) {
  view = name;
  for (const each of Object.keys(VIEWS)) byId(each).hidden = each !== name;
  window.history.replaceState(null, "", `#${name}`);
  for (const button of document.querySelectorAll(".view")) {
    if (button.dataset.view === name) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
}

const guarded = (work) => work.catch((error) => notify(error.message, true));

for (const button of document.querySelectorAll(".view")) {
  button.id = `show-${button.dataset.view}`;
  const key = Object.keys(VIEW_KEYS).find((each) => VIEW_KEYS[each] === button.dataset.view).toUpperCase();
  Object.assign(button, { title: `Key ${key}` });
  button.setAttribute("aria-keyshortcuts", key);
  button.addEventListener("click", () => guarded(open(button.dataset.view)));
}

// ---------------------------------------------------------------- above all views

onChange(() => {
  const { open: left, ...decided } = state.tally;
  const done = Object.values(decided).reduce((sum, own) => sum + own, 0);
  byId("name").textContent = state.table ?? "";
  document.title = `${state.table}: review`;
  Object.assign(byId("decided"), { max: Math.max(left + done, 1), value: done });
  byId("decided-words").textContent = `${number(done)} decided, ${number(left)} open`;
  drawOutbox();
});

// What is on its way, and what would be undone.
function drawOutbox() {
  const last = outbox.lastStep() ?? state.undo;
  const isStopped = outbox.isStopped();
  byId("undo").disabled = !last;
  byId("undo").title = last ? `Undo: ${last.what}` : "";
  byId("saving").textContent = !outbox.count() ? "" : isStopped ? `${number(outbox.count())} not saved` : `Saving ${number(outbox.count())} …`;
  byId("saving").classList.toggle("trouble", isStopped);
  byId("resend").hidden = !isStopped || !outbox.count();
}

outbox.on("changed", drawOutbox);
byId("resend").addEventListener("click", outbox.resume);

// A decision was not taken: nothing else is sent before the person knows, and its cell comes back when they say so.
outbox.on("stopped", ({ entry, error, canBeSentAgain }) => {
  const others = outbox.count() - (canBeSentAgain ? 1 : 0);
  notify(error.message, true);
  const again = el("button", { type: "button", onclick: () => { dialog.onclose = null; dialog.close(); outbox.resume(); } }, "Try again");
  const show = el("button", { type: "button", className: "accept", onclick: () => dialog.close() }, "Show the cell");
  const dialog = openDialog(["Not saved: ", apart(entry.what)], el("p", {}, error.message),
    ...(others ? [el("p", {}, `${counted(others, "decision")} after it ${others === 1 ? "waits" : "wait"}.`)] : []),
    el("div", { className: "ways" }, ...(entry.cell ? [show] : []), ...(canBeSentAgain ? [again] : [])));
  dialog.onclose = () => guarded(bringBack(entry, canBeSentAgain));
  (entry.cell ? show : again).focus();
});

async function bringBack({ cell }, canBeSentAgain) {
  if (!canBeSentAgain) outbox.resume();
  if (!cell) return;
  turnTo("decide");
  if (canBeSentAgain) decide.bringBack(cell);
  else await decide.bringBackAnew(cell.flag);
}

async function undo() {
  const last = outbox.lastStep() ?? state.undo;
  if (!last) return notify("There is nothing to undo.");
  const home = homeOf(last);
  if (home !== view) { // nothing that is not in sight is taken back
    await open(home);
    return notify(told`The last step was ${last.what}. Undo once more takes it back.`);
  }
  return VIEWS[view].undo(takeBack(last));
}

// The view in which a step is taken back: this one, if it shows what comes of it.
function homeOf({ about }) {
  if (about === "columns") return about;
  const isOfMany = about === "groups" || about === "values";
  const showsIt = isOfMany ? ["groups", "values"] : ["groups", "values", "decide", "table"];
  return showsIt.includes(view) ? view : isOfMany ? about : "decide";
}

// Take back the last step, of this page or of before: its cell, and a promise that is kept once the server knows.
function takeBack({ step, what, cell }) {
  if (outbox.lastStep()) return outbox.undo();
  const words = () => told`Undone: ${what}.`;
  return { cell, answered: outbox.post({ name: "undo", deed: { step }, what, cell: null, words, isAwaited: true }) };
}

const showHistory = () => history.show(() => VIEWS[view].open());

async function exportAll() {
  const done = await outbox.post({ name: "export", deed: {}, what: "the export", cell: null, isAwaited: true });
  const lines = Object.entries({
    table: "the table with accepted repairs only; everything else as it was",
    patch: "the repairs, for cellmend apply on a newer copy",
    recipe: "values that were replaced wherever they stood, and single repairs, for cellmend apply on next month's file",
    decisions: "all decisions, for cellmend clean --decisions",
  }).map(([what, words]) => el("li", {}, el("b", {}, done.files[what]), ` ${words} `,
    el("button", { type: "button", onclick: () => guarded(download(what, done.files[what])) }, "Download")));
  openDialog(`Exported ${counted(done.fixes, "repair")}`, el("p", {}, `Written to ${done.folder}:`), el("ul", { className: "files" }, ...lines));
}

// Whoever speaks to the machine, or hits keys unawares, can do without those of one letter.
const keysCount = () => localStorage.getItem("keys") !== "off";

function showKeys() {
  const box = el("input", { type: "checkbox", checked: keysCount(), onchange: () => localStorage.setItem("keys", box.checked ? "on" : "off") });
  openDialog("Keys", el("label", { className: "switch" }, box, " Letters and digits are keys"), el("dl", { className: "keys" }, ...KEYS.map(([key, words]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)))));
}

byId("undo").addEventListener("click", () => guarded(undo()));
byId("history").addEventListener("click", () => guarded(showHistory()));
byId("learn").addEventListener("click", () => guarded(learning.open()));
byId("export").addEventListener("click", () => guarded(exportAll()));
byId("help").addEventListener("click", showKeys);

document.addEventListener("keydown", (event) => {
  if (isTyping(event) || byId("dialog").open) return;
  if (event.key.length === 1 && !keysCount()) return;
  const key = event.key.toLowerCase();
  const other = key in VIEW_KEYS ? () => open(VIEW_KEYS[key]) : { u: undo, l: learning.open, m: same.take, h: showHistory }[key];
  if (other && !event.repeat) {
    event.preventDefault();
    guarded(Promise.resolve(other()));
  } else if (event.key === "?") showKeys();
  else VIEWS[view].press?.(event);
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
      if (isNews) await readState();
      if (isNews || (view === "decide" && decide.isEmpty())) await VIEWS[view].look();
    }
  } catch (error) {
    notify(error.message, true);
  }
  pulseSoon(state.learning?.is_running ? QUICK_PULSE : PULSE);
}

document.addEventListener("visibilitychange", () => document.hidden || pulseSoon(0));

values.onRows((column, value) => guarded(open("table").then(() => table.showHolding(column, value))));
rules.onRows((rule) => guarded(open("table").then(() => table.showBreaking(rule))));
learning.onLearning({ show: (cell) => open("decide").then(() => decide.bringBackAnew(cell)), begin: () => pulseSoon(QUICK_PULSE) });

await guarded(readState().then(() => open(location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "groups")));
document.documentElement.dataset.ready = "yes";
pulseSoon(QUICK_PULSE);
