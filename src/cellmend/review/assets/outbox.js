// What was decided here and is on its way: sent one after another, so that it counts in the order in which it was done.
import { tell } from "./api.js";
import { notify, told } from "./dom.js";
import { refresh } from "./state.js";

const waiting = []; // not acknowledged yet; the first is being sent
const steps = []; // what U takes back, the last one first
const listeners = { acknowledged: [], stopped: [], changed: [] };
let isSending = false;
let trouble = null; // what stopped it: the entry, the error, and whether it can be sent again

export const on = (event, listener) => listeners[event].push(listener);
export const count = () => waiting.length;
export const isStopped = () => trouble !== null;
// Once all that was done so far is acknowledged; at once if something stopped it.
export const settled = () => (trouble ? Promise.resolve() : waiting.at(-1)?.answered.catch(() => {}) ?? Promise.resolve());
export const lastStep = () => steps.at(-1) ?? null;
export const keyOf = ({ row, column }) => `${row} ${column}`;
export const isPending = (key) => waiting.some(({ cell }) => cell && keyOf(cell.flag) === key);

// Send a deed once all before it are acknowledged. An entry has
// - `name` and `deed`: what the server is told, or a function that gives it when its turn has come;
// - `what` it is about, in words; the `cell`, as it was shown; `about: "columns"`, if it is about those;
// - `words`, which of the answer give the sentence that says that it is done;
// - `isStep`: can it be undone?
// - `isAwaited`: does somebody wait, who is told of a refusal? Else that stops the others.
export function post(entry) {
  const takesItsPlace = trouble?.canBeSentAgain && entry.cell && trouble.entry.cell && keyOf(entry.cell.flag) === keyOf(trouble.entry.cell.flag);
  if (takesItsPlace) forget(waiting.shift());
  trouble = null;
  if (takesItsPlace) waiting.unshift(entry);
  else waiting.push(entry);
  if (entry.isStep) steps.push(entry);
  entry.answered = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
  entry.answered.catch(() => {}); // told by the dialog, where nobody waits
  send();
  return entry.answered;
}

// Take back the last step of this page: if it was not sent yet it is not sent at all.
export function undo() {
  const last = steps.pop();
  const at = waiting.indexOf(last);
  if (at > 0 || (at === 0 && !isSending)) {
    waiting.splice(at, 1);
    last.reject(new Error("It was taken back before it was saved."));
    notify(told`Undone: ${last.what}.`);
    resume();
    return { cell: last.cell, answered: Promise.resolve() };
  }
  const deed = () => (last.answer?.step ? { step: last.answer.step } : null);
  return { cell: last.cell, answered: post({ name: "undo", deed, what: last.what, about: last.about, cell: last.cell, words: () => told`Undone: ${last.what}.` }) };
}

// What was done here was undone otherwise.
export const forgetSteps = () => { steps.length = 0; };

// Go on after what stopped it: try it again if it can be sent again, else without it.
export function resume() {
  trouble = null;
  send();
}

async function send() {
  changed();
  if (isSending) return;
  isSending = true;
  while (waiting.length && !trouble) {
    await sendFirst(waiting[0]);
    changed();
  }
  isSending = false;
}

async function sendFirst(entry) {
  const deed = typeof entry.deed === "function" ? entry.deed() : entry.deed; // null: nothing is left to be done
  try {
    entry.answer = deed === null ? {} : await tell(entry.name, deed);
    if (entry.answer.undone === false) throw Object.assign(new Error("Another tab has done something since; nothing was undone."), { status: 409 });
  } catch (error) {
    return failed(entry, error);
  }
  waiting.shift();
  if (entry.isStep && !entry.answer.step) forget(entry); // it stood already
  if (entry.answer.version) refresh(entry.answer);
  if (entry.words && deed !== null) notify(entry.words(entry.answer));
  entry.resolve(entry.answer);
  for (const listener of listeners.acknowledged) listener(entry);
}

function failed(entry, error) {
  const isRefused = error.status >= 400 && error.status < 500;
  if (isRefused || entry.isAwaited) forget(waiting.shift());
  if (isRefused && entry.name === "undo") steps.length = 0; // they are no longer the last ones
  if (isRefused || entry.isAwaited) entry.reject(error);
  if (entry.isAwaited) return;
  trouble = { entry, error, canBeSentAgain: !isRefused };
  for (const listener of listeners.stopped) listener(trouble);
}

function forget(entry) {
  const at = steps.indexOf(entry);
  if (at >= 0) steps.splice(at, 1);
}

function changed() {
  for (const listener of listeners.changed) listener();
}

// Leaving the page now would lose what is on its way: the browser asks.
addEventListener("beforeunload", (event) => waiting.length && event.preventDefault());
