// The rules of the table: those that it shows, those that were called sure, and those of one's own.
import { ask } from "./api.js";
import { apart, byId, counted, el, notify, number, told } from "./dom.js";
import * as outbox from "./outbox.js";
import { readState } from "./state.js";

const FIRST = 8; // rules are listed until somebody wants to see all
const SOURCES = { found: "found in the table", sure: "called sure when the table was cleaned", own: "your own" };

const form = byId("own-rule");
let showRows = () => {};
let isWhole = false;

// `show(rule)` opens the table with the rows that break a rule.
export const onRows = (show) => { showRows = show; };

export async function open() {
  draw(await ask("rules"));
}

// What is being typed stays; the list is drawn anew only when it was not there.
export async function look() {
  if (!byId("rule-list").children.length) await open();
}

function draw({ rules }) {
  form.querySelector("button").disabled = rules === null;
  const listed = rules === null ? [] : isWhole ? rules : rules.slice(0, FIRST);
  byId("rule-list").replaceChildren(...listed.map(line));
  byId("rules-told").textContent = rules === null ? "The rules are looked at as soon as the model is read."
    : rules.length ? `${counted(rules.length, "rule")}, those with the fewest exceptions first.` : "The table shows no rules.";
  byId("all-rules").hidden = rules === null || isWhole || rules.length <= FIRST;
  if (rules) byId("all-rules").textContent = `Show all ${number(rules.length)} rules`;
}

byId("all-rules").addEventListener("click", () => {
  isWhole = true;
  open().catch((error) => notify(error.message, true));
});

async function say(name, deed, words) {
  draw(await outbox.post({ name, deed, what: `the rule “${deed.rule}”`, words, about: "columns", isStep: true, isAwaited: true }));
  await readState();
}

const said = (...args) => say(...args).catch((error) => notify(error.message, true));

function line(rule) {
  const { rule: words, support, broken, source, verdict } = rule;
  const kept = broken ? `${percentKept(support)} of the rows keep it` : "all rows keep it";
  const rows = broken
    ? el("button", { type: "button", className: "quietly", "aria-label": `Show the ${counted(broken, "row")} that break ${words}`, onclick: () => showRows(words) }, `Show ${counted(broken, "row")} that ${broken === 1 ? "breaks" : "break"} it`)
    : el("span");
  return el("li", { className: verdict ?? "" },
    el("div", {}, el("p", { className: "words" }, apart(words)), el("p", { className: "quiet" }, `${SOURCES[source]} · ${kept}`)),
    rows, el("div", { className: "verdicts" }, ...verdicts(rule)));
}

const percentKept = (support) => `${Math.floor(1000 * support) / 10} %`;

function verdicts({ rule, broken, source, verdict }) {
  if (source === "own") return [el("button", { type: "button", className: "quietly", "aria-label": `Remove ${rule}`, onclick: () => said("drop_rule", { rule }, () => told`Removed: ${rule}.`) }, "Remove")];
  const choice = (value, name, words) => el("button", {
    type: "button", className: "quietly", "aria-pressed": verdict === value ? "true" : "false", "aria-label": `${name}: ${rule}`,
    onclick: () => (verdict === value ? said("rule", { rule, verdict: null }, () => told`Neither confirmed nor struck out: ${rule}.`) : said("rule", { rule, verdict: value }, words)),
  }, name);
  const confirmed = () => (broken ? told`Confirmed: ${rule}. What breaks it is flagged.` : told`Confirmed: ${rule}.`);
  return [
    ...(source === "sure" ? [] : [choice("confirmed", "Confirm", confirmed)]),
    choice("struck", "Strike out", () => told`Struck out: ${rule}. It no longer speaks against any cell.`),
  ];
}

// ---------------------------------------------------------------- one's own

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const rule = form.elements.rule.value.trim();
  tellTrouble("");
  try {
    await say("own_rule", { rule }, () => told`Saved: ${rule}. What breaks it is flagged.`);
    form.reset();
  } catch (error) {
    tellTrouble(error.message);
    form.elements.rule.focus();
  }
});

function tellTrouble(sentence) {
  byId("own-rule-trouble").textContent = sentence;
  if (sentence) form.elements.rule.setAttribute("aria-invalid", "true");
  else form.elements.rule.removeAttribute("aria-invalid");
}
