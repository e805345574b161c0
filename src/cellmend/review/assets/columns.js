// What whole columns are: their kinds, and which values may stand in them; beside them stand the rules of the table.
import { ask } from "./api.js";
import { apart, byId, counted, el, notify, told } from "./dom.js";
import * as outbox from "./outbox.js";
import * as rules from "./rules.js";
import { readState } from "./state.js";

const KINDS = { real: "number", category: "category", count: "count", ordinal: "ordered levels", date: "date", ignore: "leave out" };

export async function open() {
  const found = ask("columns");
  await rules.open();
  draw(await found);
}

// What is being chosen or typed is not disturbed: once the columns are there they stay.
export async function look() {
  if (!byId("column-list").querySelector("article")) await open();
  else await rules.look();
}

function draw({ columns }) {
  if (columns === null) {
    byId("column-list").replaceChildren(el("p", { className: "quiet" }, "The model is being read."));
    return;
  }
  byId("column-list").replaceChildren(...columns.map(line));
}

export async function undo({ answered }) {
  await answered;
  await Promise.all([open(), readState()]);
}

async function say(name, deed, what, words) {
  try {
    draw(await outbox.post({ name, deed, what, words: () => words, about: "columns", isStep: true, isAwaited: true }));
    await readState();
  } catch (error) {
    notify(error.message, true);
  }
}

function line(column) {
  const { name, kind, guessed, why, flagged, limits } = column;
  const select = el("select", { onchange: () => say("column", { column: name, kind: select.value === guessed ? null : select.value }, `the kind of ${name}`,
    told`${name} counts as ${KINDS[select.value]} from the next learning on.`) },
  ...Object.entries(KINDS).map(([value, words]) => el("option", { value, selected: value === kind }, words)));
  const isLimited = Object.values(limits).some((own) => own !== null);
  const notes = [kind === guessed ? null : `guessed: ${KINDS[guessed]}`, why, flagged ? counted(flagged, "flagged cell") : null];
  return el("article", { className: "column" },
    el("div", {}, el("h3", {}, apart(name)), el("p", { className: "quiet" }, notes.filter(Boolean).join(" · "))),
    el("label", {}, "Kind", select),
    el("details", { open: isLimited }, el("summary", {}, isLimited ? "Valid values" : "Limit the values"), form(name, kind, limits)));
}

function form(name, kind, limits) {
  const field = (label, key, value, hint, type = "text") =>
    el("label", {}, label, el("input", { type, name: key, value: value ?? "", autocomplete: "off", placeholder: hint }));
  const ends = kind === "date"
    ? [field("Earliest", "earliest", limits.earliest, "", "date"), field("Latest", "latest", limits.latest, "", "date")]
    : [field("At least", "low", limits.low, "0"), field("At most", "high", limits.high, "100")];
  const made = el("form", {
    onsubmit: (event) => {
      event.preventDefault();
      const given = Object.fromEntries(new FormData(made));
      const levels = given.levels.split(",").map((level) => level.trim()).filter(Boolean);
      say("column", { column: name, limits: { ...given, levels } }, `the valid values of ${name}`, told`The valid values of ${name} are saved; cells that break them are flagged.`);
    },
  },
  ...ends,
  field("One of, with commas between", "levels", limits.levels?.join(", "), "S, M, L"),
  field("Of the form (a regular expression)", "pattern", limits.pattern, "[A-Z]{2}-\\d+"),
  el("button", { type: "submit" }, "Save"));
  return made;
}
