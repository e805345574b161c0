// One cell: what was found, what is proposed and why, and the ways to decide. Used in the queue and beside the table.
// What is shown stays as it is until somebody acts; what is new about it is told in a line of its own.
import { ask } from "./api.js";
import { action, apart, byId, counted, el, isTyping, notify, number, openDialog, percent, plain, shown, speak, told } from "./dom.js";
import { brief, compared, isLong, isolated, LONG } from "./difference.js";
import { keyOf } from "./outbox.js";

const typed = new Map(); // what is being typed about each cell: it is never lost

export class Card {
  // `deliver(name, deed, {words, what, isAwaited})` takes a deed about the cell on its way; `skip` puts it last.
  constructor(place, { deliver, skip = null }) {
    this.place = place;
    this.deliver = deliver;
    this.skip = skip;
    this.cell = null;
    this.news = el("p", { className: "news", role: "status" });
    this.isSaving = false; // is what was typed on its way?
  }

  show(cell) {
    this.cell = cell;
    this.news.replaceChildren();
    this.draw();
  }

  clear(...children) {
    this.cell = null;
    this.place.replaceChildren(...children);
  }

  get where() {
    return { row: this.cell.flag.row, column: this.cell.flag.column };
  }

  get key() {
    return this.cell && keyOf(this.cell.flag);
  }

  get editing() {
    return typed.get(this.key) ?? null;
  }

  draw() {
    const { flag, text, decision, is_question: isQuestion, speaks_for: speaksFor } = this.cell;
    const kicker = isQuestion ? `Question · speaks for ${counted(speaksFor, "cell")}` : flag.cause;
    this.place.replaceChildren(
      el("div", { className: "top" }, el("p", { className: "kicker" }, kicker), this.news),
      el("h3", {}, apart(flag.column), " ", el("small", {}, `row ${number(flag.row)}`)),
      el("p", { className: "where" }, ...this.calledInFile()),
      el("div", { className: "told", tabIndex: 0, role: "group", "aria-label": "What was found" },
        ...(this.editing === null ? [] : [this.editor()]),
        this.exchange(),
        ...(flag.suspicion > 0 ? [suspicionBar(flag.suspicion)] : []),
        el("p", { className: "reason" }, ...isolated(brief(flag.reason, text, flag.repair), [text, flag.repair, flag.column])),
        ...this.likely(),
        ...(decision ? [el("p", { className: `verdict ${decision.state}` }, ...told`Decided: ${decision.words}.`)] : []),
      ),
      this.actions(),
      this.bulkActions(),
    );
  }

  // The row as the report names it: by its line in the file, and by what stands in the columns that tell rows apart.
  calledInFile() {
    const { line, name } = this.cell;
    const parts = [...(line === null ? [] : [`line ${number(line)}`]), ...(name ? [apart(name)] : [])];
    return parts.length ? parts.flatMap((part, place) => (place ? [" · ", part] : [part])) : ["\u00a0"];
  }

  exchange() {
    const { flag, text, decision } = this.cell;
    const repair = decision?.repair ?? flag.repair;
    if (repair === null && flag.suspicion < 0.5) {
      return el("div", { className: isLong(text) ? "exchange long" : "exchange" },
        el("div", {}, el("span", { className: "word" }, "Is it right?"), el("output", {}, shown(text))));
    }
    const word = decision?.repair != null ? "decided" : "proposed";
    const span = flag.low === null ? null : el("small", {}, `usually ${short(flag.low)} to ${short(flag.high)}`);
    const isProposal = repair !== null && repair === flag.repair && flag.repair_probability > 0;
    const sure = isProposal ? el("small", { className: "sure" }, `${surely(flag.repair_probability)} sure`) : null;
    return el("div", { className: isLong(text) || isLong(repair) ? "exchange long" : "exchange" },
      el("div", {}, el("span", { className: "word" }, "found"), el("output", { className: "found" }, ...compared(text, repair))),
      el("span", { className: "arrow", "aria-hidden": "true" }, "→"),
      el("div", {}, el("span", { className: "word" }, word),
        el("output", { className: "meant" }, ...(repair === null ? [el("i", {}, "not sure enough")] : compared(repair, text))), sure, span));
  }

  // What may be meant: the levels that the rest of the row makes likely, and what other rows say. Each can be chosen.
  get suggestions() {
    const { likely, witnesses, text } = this.cell;
    const found = new Map(likely.map(([level, chance]) => [level, percent(chance)]));
    for (const { says, count } of witnesses ?? []) if (says !== null && !found.has(says)) found.set(says, counted(count, "row"));
    return [...found].map(([level, why]) => ({ level, why, isHere: level === text }));
  }

  get choices() {
    return this.suggestions.filter(({ isHere }) => !isHere).map(({ level }) => level);
  }

  likely() {
    const { suggestions, choices } = this;
    if (choices.every((level) => level === this.cell.flag.repair)) return []; // nothing but what is proposed
    const parts = suggestions.map(({ level, why, isHere }) => el("li", {},
      ...(isHere ? [el("span", {}, apart(level))] : this.choice(level, choices.indexOf(level) + 1)), " ", el("b", {}, why)));
    return [el("div", { className: "likely" }, el("span", { className: "word" }, "by the rest of the row and other rows"), el("ul", {}, ...parts))];
  }

  choice(level, digit) {
    const key = digit <= 9 ? String(digit) : null;
    const name = isLong(level) ? `${level.slice(0, LONG)}…` : level;
    return [...(key ? [el("kbd", { "aria-hidden": "true" }, key), " "] : []),
      el("button", { type: "button", className: "quietly", "aria-label": `Repair as ${level}`, "aria-keyshortcuts": key, onclick: () => this.repair(level) }, apart(name))];
  }

  // Every button has its place, so that none comes to lie where another one was.
  actions() {
    const { flag } = this.cell;
    const buttons = [
      action("Accept", "A", "accept", () => this.accept(), flag.repair === null),
      action("Value is right", "R", "reject", () => this.reject()),
      action("Edit", "E", "", () => this.edit()),
    ];
    if (this.skip) buttons.push(action(this.cell.decision ? "Go on" : "Skip", "S", "", () => this.skip()));
    return el("div", { className: "actions" }, ...buttons);
  }

  bulkActions() {
    const { alike, decision } = this.cell;
    const offers = [["value", "with this value"], ["cause", "of this cause"]].map(([by, words]) => {
      const most = mostAlike(alike, by);
      if (most < 2) return el("span");
      return action(`All ${number(most)} ${words}…`, by === firstAlike(alike) ? "B" : null, "quietly", () => this.bulk(by));
    });
    const withdraw = decision ? action("Withdraw", null, "quietly", () => this.withdraw()) : el("span");
    return el("div", { className: "bulk" }, action("Wrong, no repair", "W", "quietly", () => this.wrong()), ...offers, withdraw);
  }

  // ---------------------------------------------------------------- what is new about it

  // Tell what differs from what is shown; `offer` is the name of a button and what it does.
  tellNews(now, [name, act]) {
    const before = this.cell;
    const line = isOtherwise(now.decision, before.decision)
      ? now.decision ? told`Decided in another tab meanwhile: ${now.decision.words}.` : ["Taken back in another tab meanwhile."]
      : substance(now) === substance(before) ? [] : ["New suggestions."];
    this.sayBeside(line, name, act);
  }

  sayBeside(line, name, act) {
    const offer = line.length ? [" ", el("button", { type: "button", className: "quietly", onclick: act }, name)] : [];
    this.news.replaceChildren(...line, ...offer);
  }

  // ---------------------------------------------------------------- deeds

  // What the server is told of the cell: where it is and what was shown of it.
  get shownAs() {
    return { ...this.where, value: this.cell.text, seen: this.cell.decision };
  }

  get name() {
    return `row ${number(this.cell.flag.row)}, ${this.cell.flag.column}`;
  }

  decide(deed, words, isAwaited = false) {
    return this.deliver("decide", { ...this.shownAs, ...deed }, { words: () => words, what: this.name, isAwaited });
  }

  accept() {
    if (this.cell.flag.repair === null) this.edit();
    else this.repair(this.cell.flag.repair);
  }

  repair(text) {
    const { row, column, repair } = this.cell.flag;
    this.decide({ verdict: "wrong", repair: text, edited: text !== repair }, told`Accepted: ${column} of row ${number(row)} becomes ${plain(text)}.`);
  }

  reject() {
    const { row, column } = this.cell.flag;
    this.decide({ verdict: "right" }, told`Kept: ${column} of row ${number(row)} stays ${plain(this.cell.text)}.`);
  }

  wrong() {
    const { row, column } = this.cell.flag;
    this.decide({ verdict: "wrong", repair: null }, told`Noted: ${column} of row ${number(row)} is wrong; no repair.`);
  }

  withdraw() {
    const { row, column } = this.cell.flag;
    const words = () => told`Withdrawn: ${column} of row ${number(row)} is open again.`;
    this.deliver("withdraw", this.shownAs, { words, what: this.name, isAwaited: true }).catch((error) => notify(error.message, true));
  }

  edit() {
    if (this.editing === null) typed.set(this.key, this.cell.decision?.repair ?? this.cell.flag.repair ?? this.cell.text ?? "");
    this.draw();
    const input = this.place.querySelector("input");
    input.focus();
    input.select();
  }

  editor(trouble = null) {
    const id = `${this.place.id}-edit`;
    const { key } = this;
    const input = el("input", {
      id, value: this.editing, autocomplete: "off", spellcheck: false, dir: "auto", oninput: () => typed.set(key, input.value),
      onkeydown: (event) => event.key === "Escape" && this.cancel(),
      "aria-invalid": trouble ? "true" : null, "aria-describedby": trouble ? `${id}-trouble` : null,
    });
    const save = el("button", { type: "submit", className: "accept" }, "Save");
    const insist = el("button", { type: "button", onclick: () => this.save(true) }, "Save it all the same");
    const cancel = el("button", { type: "button", className: "quietly", onclick: () => this.cancel() }, "Cancel");
    const said = trouble ? [el("p", { id: `${id}-trouble`, className: "trouble", role: "alert" }, trouble.message)] : [];
    return el("form", { className: "editor", onsubmit: (event) => { event.preventDefault(); this.save(false); } },
      el("label", { for: id }, el("span", {}, ...told`What ${this.cell.flag.column} should be`)), input, ...said,
      el("div", { className: "ways" }, trouble?.mayInsist ? insist : save, cancel));
  }

  // What was typed is checked by the server, so the next cell waits for it.
  async save(insist) {
    if (this.isSaving) return;
    const { cell, key, editing } = this;
    const { row, column, repair } = cell.flag;
    this.isSaving = true;
    try {
      const words = told`Saved: ${column} of row ${number(row)} becomes ${plain(editing)}.`;
      await this.decide({ verdict: "wrong", repair: editing, insist, edited: editing !== repair }, words, true);
      typed.delete(key);
      if (this.key === key) this.draw();
    } catch (error) {
      if (this.cell === cell) this.showTrouble(error);
      else notify(error.message, true);
    } finally {
      this.isSaving = false;
    }
  }

  showTrouble(error) {
    this.place.querySelector("form").replaceWith(this.editor(error));
    this.place.querySelector(error.mayInsist ? "form .ways button" : "form input").focus();
  }

  cancel() {
    typed.delete(this.key);
    this.draw();
    this.place.focus();
  }

  // ---------------------------------------------------------------- many at once

  bulk(by) {
    return this.offerBulk(by, this.cell.alike[by].wrong ? "wrong" : "right", this.cell).catch((error) => notify(error.message, true));
  }

  async offerBulk(by, verdict, cell) {
    const { flag, alike } = cell;
    const where = { row: flag.row, column: flag.column, by, verdict };
    const found = await ask("alike", where);
    if (this.cell !== cell) return;
    const list = el("ol", { className: "listed", tabIndex: 0, "aria-label": "The cells that this decides" });
    const add = (cells) => list.append(...cells.map((each) => bulkLine(each, verdict)));
    add(found.cells);
    list.addEventListener("scroll", async () => {
      const start = list.children.length;
      if (start >= found.count || list.scrollTop + list.clientHeight < list.scrollHeight - 200 || list.dataset.loading) return;
      list.dataset.loading = "yes";
      add((await ask("alike", { ...where, start })).cells);
      delete list.dataset.loading;
    });
    const turn = verdict === "wrong" ? "right" : "wrong";
    const other = alike[by][turn]
      ? el("button", { type: "button", className: "quietly", onclick: () => this.offerBulk(by, turn, cell) }, turn === "right" ? "Keep the values instead…" : "Accept the repairs instead…")
      : null;
    const name = verdict === "wrong" ? `Accept all ${number(found.count)}` : `Keep all ${number(found.count)}`;
    const go = el("button", { type: "button", className: verdict === "wrong" ? "accept" : "reject", onclick: () => this.decideBulk(where, found.count) }, name);
    const many = counted(found.count, "open cell");
    openDialog(by === "value" ? told`${many} of ${flag.column} with the value ${plain(flag.value)}` : told`${many} of ${flag.column} of the cause “${flag.cause}”`,
      el("p", {}, verdict === "wrong" ? "Each of them gets its own repair, as listed. One undo takes all back." : "All of them keep their values. One undo takes all back."),
      list, el("div", { className: "ways" }, go, ...(other ? [other] : [])));
    go.focus();
  }

  decideBulk(where, count) {
    byId("dialog").close();
    const words = ({ cells }) => (where.verdict === "wrong" ? `Accepted ${counted(cells, "repair")}.` : `Kept ${counted(cells, "value")}.`);
    return this.deliver("bulk", { ...where, count }, { words, what: `${number(count)} decisions`, isAwaited: true })
      .catch((error) => notify(error.message, true));
  }

  // ---------------------------------------------------------------- keys

  press(event) {
    if (!this.cell || this.isSaving || event.repeat || isTyping(event)) return false;
    const chosen = /^[1-9]$/.test(event.key) ? this.choices[event.key - 1] : undefined;
    if (chosen !== undefined) {
      event.preventDefault();
      this.repair(chosen);
      return true;
    }
    const deed = { a: "accept", r: "reject", e: "edit", w: "wrong", s: this.skip ? "skip" : "", b: "bulkFirst" }[event.key.toLowerCase()];
    if (!deed) return false;
    event.preventDefault();
    this[deed]();
    return true;
  }

  bulkFirst() {
    const by = firstAlike(this.cell.alike);
    return by ? this.bulk(by) : notify("No other open cell is like this one.");
  }

  // Take the keys: what is being typed is typed on, else the card has the focus and is read out.
  focus() {
    if (this.editing !== null) return this.place.querySelector("input").focus();
    const { flag, text } = this.cell;
    const proposed = flag.repair === null ? "no repair is known" : `proposed ${plain(flag.repair)}`;
    this.place.focus({ preventScroll: true });
    speak(`${flag.column}, row ${flag.row}: found ${plain(text)}, ${proposed}. ${flag.reason}`);
  }
}

const mostAlike = (alike, by) => (alike ? Math.max(alike[by].right, alike[by].wrong) : 0);
const firstAlike = (alike) => ["value", "cause"].find((by) => mostAlike(alike, by) > 1);

export const isOtherwise = (one, other) => one?.verdict !== other?.verdict || one?.repair !== other?.repair;
const substance = ({ flag, text, likely, picture, witnesses, is_question: isQuestion }) => JSON.stringify([flag, text, likely, picture, witnesses, isQuestion]);

function bulkLine(flag, verdict) {
  const repair = verdict === "wrong" ? [" → ", el("span", { className: "meant" }, shown(flag.repair))] : [];
  return el("li", {}, el("small", {}, `row ${number(flag.row)}`), " ", el("span", { className: "found" }, shown(flag.value)), ...repair);
}

function suspicionBar(suspicion) {
  const bar = el("span", { className: "length" });
  bar.style.width = percent(suspicion).replace(" ", "");
  return el("p", { className: "suspicion" }, el("span", { className: "room", "aria-hidden": "true" }, bar), ` ${surely(suspicion)} suspicion`);
}

const surely = (chance) => (chance >= 0.995 ? "over 99 %" : percent(chance));

// The end of an interval: a number, or a date as it stands.
function short(end) {
  if (typeof end === "string") return end;
  return Number(end.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6, useGrouping: Math.abs(end) >= 1e5 });
}
