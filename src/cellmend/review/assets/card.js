// One cell: what was found, what is proposed and why, and the ways to decide. Used in the queue and beside the table.
import { ask, tell } from "./api.js";
import { action, byId, counted, el, isTyping, notify, number, openDialog, percent, plain, shown, speak } from "./dom.js";
import { brief, compared, isLong } from "./difference.js";
import { refresh } from "./state.js";

export class Card {
  // `decided` is called once something was decided, with the cell; `skipped` likewise, where skipping makes sense.
  constructor(place, { decided, skipped = null }) {
    this.place = place;
    this.decided = decided;
    this.skipped = skipped;
    this.cell = null;
    this.editing = null; // what is being typed
    this.isActing = false; // is a decision on its way? Then no other is taken.
  }

  // Show a cell; if nobody asked for that (`byItself`), never in place of what is being typed.
  async show(where, { byItself = false } = {}) {
    const wanted = `${where.row} ${where.column}`;
    if (!byItself) this.wanted = wanted;
    const before = this.wanted;
    const cell = await ask("cell", where);
    if (this.wanted !== before || (byItself && (this.editing !== null || this.isActing))) return null; // overtaken
    const isSame = this.cell && this.cell.flag.row === cell.flag.row && this.cell.flag.column === cell.flag.column;
    this.cell = cell;
    this.wanted = wanted;
    if (!isSame) this.editing = null;
    this.draw();
    this.drawLikely(wanted);
    return cell;
  }

  clear(...children) {
    this.cell = this.wanted = this.editing = null;
    this.place.replaceChildren(...children);
  }

  get where() {
    return { row: this.cell.flag.row, column: this.cell.flag.column };
  }

  draw() {
    const { flag, text, decision, is_question: isQuestion, speaks_for: speaksFor } = this.cell;
    const kicker = isQuestion ? `Question · speaks for ${counted(speaksFor, "cell")}` : flag.cause;
    this.place.replaceChildren(
      el("p", { className: "kicker" }, kicker),
      el("h3", {}, flag.column, " ", el("small", {}, `row ${number(flag.row)}`)),
      this.exchange(),
      ...(flag.suspicion > 0 ? [suspicionBar(flag.suspicion)] : []),
      el("p", { className: "reason" }, brief(flag.reason, text, flag.repair)),
      el("div", { className: "likely" }),
      ...(decision ? [el("p", { className: `verdict ${decision.state}` }, `Decided: ${decision.words}.`)] : []),
      this.actions(),
      ...(this.editing === null ? [] : [this.editor()]),
      this.bulkActions(),
    );
  }

  exchange() {
    const { flag, text, decision } = this.cell;
    const repair = decision?.repair ?? flag.repair;
    if (repair === null && flag.suspicion < 0.5) {
      return el("div", { className: "exchange" }, el("div", {}, el("span", { className: "word" }, "Is it right?"), el("output", {}, shown(text))));
    }
    const word = decision?.repair != null ? "decided" : "proposed";
    const span = flag.low === null ? null : el("small", {}, `usually ${short(flag.low)} to ${short(flag.high)}`);
    return el("div", { className: isLong(text) || isLong(repair) ? "exchange long" : "exchange" },
      el("div", {}, el("span", { className: "word" }, "found"), el("output", { className: "found" }, ...compared(text, repair))),
      el("span", { className: "arrow", "aria-hidden": "true" }, "→"),
      el("div", {}, el("span", { className: "word" }, word),
        el("output", { className: "meant" }, ...(repair === null ? [el("i", {}, "not sure enough")] : compared(repair, text))), span));
  }

  async drawLikely(wanted) {
    const found = await ask("likely", this.where).catch(() => ({ levels: [] }));
    if (this.wanted !== wanted || !found.levels.length) return;
    const parts = found.levels.map(([level, chance]) => el("li", {}, this.choice(level), " ", el("b", {}, percent(chance))));
    this.place.querySelector(".likely")?.replaceChildren(el("span", { className: "word" }, "by the rest of the row"), el("ul", {}, ...parts));
  }

  // A likely level, which can be chosen as the repair unless it is what stands there.
  choice(level) {
    if (level === this.cell.text) return el("span", {}, level);
    const { row, column } = this.cell.flag;
    const words = `Accepted: ${column} of row ${number(row)} becomes ${plain(level)}.`;
    const choose = () => this.decide({ verdict: "wrong", repair: level }, words);
    return el("button", { type: "button", className: "quietly", "aria-label": `Repair as ${level}`, onclick: choose }, level);
  }

  actions() {
    const { flag, decision } = this.cell;
    const buttons = [];
    if (flag.repair !== null) buttons.push(action("Accept", "A", "accept", () => this.accept()));
    buttons.push(action(flag.suspicion > 0 ? "Value is right" : "Right", "R", "reject", () => this.reject()));
    buttons.push(action("Edit", "E", "", () => this.edit()));
    if (this.skipped) buttons.push(action("Skip", "S", "", () => this.skip()));
    if (decision) buttons.push(action("Withdraw", null, "quietly", () => this.withdraw()));
    return el("div", { className: "actions" }, ...buttons);
  }

  bulkActions() {
    const { alike } = this.cell;
    const wrong = action("Wrong, no repair", "W", "quietly", () => this.wrong());
    if (!alike) return el("div", { className: "bulk" }, wrong);
    const offers = [];
    for (const [by, words] of [["value", "with this value"], ["cause", "of this cause"]]) {
      const most = Math.max(alike[by].right, alike[by].wrong);
      if (most > 1) offers.push(action(`All ${number(most)} ${words}…`, offers.length ? null : "B", "quietly", () => this.bulk(by)));
    }
    return el("div", { className: "bulk" }, ...offers, wrong);
  }

  // ---------------------------------------------------------------- deeds

  async decide(deed, words) {
    this.isActing = true;
    try {
      const done = await tell("decide", { ...this.where, seen: this.cell.decision, ...deed });
      this.editing = null;
      notify(words);
      refresh(done);
      await this.decided(this.where);
      return null;
    } catch (error) {
      if (error.status === 409) {
        notify(`${error.message} Look at it again.`, true);
        await this.show(this.where);
      } else if (this.editing === null) notify(error.message, true);
      return error;
    } finally {
      this.isActing = false;
    }
  }

  accept() {
    const { repair, row, column } = this.cell.flag;
    if (repair === null) return this.edit();
    return this.decide({ verdict: "wrong", repair }, `Accepted: ${column} of row ${number(row)} becomes ${plain(repair)}.`);
  }

  reject() {
    const { row, column } = this.cell.flag;
    return this.decide({ verdict: "right" }, `Kept: ${column} of row ${number(row)} stays ${plain(this.cell.text)}.`);
  }

  wrong() {
    const { row, column } = this.cell.flag;
    return this.decide({ verdict: "wrong", repair: null }, `Noted: ${column} of row ${number(row)} is wrong; no repair.`);
  }

  async skip() {
    refresh(await tell("skip", this.where));
    await this.skipped(this.where);
  }

  async withdraw() {
    const { row, column } = this.cell.flag;
    refresh(await tell("withdraw", this.where));
    notify(`Withdrawn: ${column} of row ${number(row)} is open again.`);
    await this.show(this.where);
  }

  edit() {
    this.editing ??= this.cell.decision?.repair ?? this.cell.flag.repair ?? this.cell.text ?? "";
    this.draw();
    const input = this.place.querySelector("input");
    input.focus();
    input.select();
  }

  editor(trouble = null) {
    const id = `${this.place.id}-edit`;
    const input = el("input", {
      id, value: this.editing, autocomplete: "off", spellcheck: false, oninput: () => (this.editing = input.value),
      onkeydown: (event) => event.key === "Escape" && this.cancel(),
      "aria-invalid": trouble ? "true" : null, "aria-describedby": trouble ? `${id}-trouble` : null,
    });
    const save = el("button", { type: "submit", className: "accept" }, "Save");
    const insist = el("button", { type: "button", onclick: () => this.save(true) }, "Save it all the same");
    const cancel = el("button", { type: "button", className: "quietly", onclick: () => this.cancel() }, "Cancel");
    const said = trouble ? [el("p", { id: `${id}-trouble`, className: "trouble", role: "alert" }, trouble.message)] : [];
    return el("form", { className: "editor", onsubmit: (event) => { event.preventDefault(); this.save(false); } },
      el("label", { for: id }, `What ${this.cell.flag.column} should be`), input, ...said,
      el("div", { className: "actions" }, trouble?.mayInsist ? insist : save, cancel));
  }

  async save(insist) {
    const { row, column } = this.cell.flag;
    const words = `Saved: ${column} of row ${number(row)} becomes ${plain(this.editing)}.`;
    const trouble = await this.decide({ verdict: "wrong", repair: this.editing, insist }, words);
    if (!trouble || this.editing === null) return;
    this.place.querySelector("form").replaceWith(this.editor(trouble));
    this.place.querySelector(trouble.mayInsist ? "form .actions button" : "form input").focus();
  }

  cancel() {
    this.editing = null;
    this.draw();
    this.place.focus();
  }

  // ---------------------------------------------------------------- many at once

  async bulk(by) {
    const { flag, alike } = this.cell;
    const verdict = alike[by].wrong ? "wrong" : "right";
    await this.offerBulk(by, verdict, flag);
  }

  async offerBulk(by, verdict, flag) {
    const where = this.where;
    const found = await ask("alike", { ...where, by, verdict });
    const like = by === "value" ? `with the value ${plain(flag.value)}` : `of the cause “${flag.cause}”`;
    const list = el("ol", { className: "listed", tabIndex: 0, "aria-label": "The cells that this decides" });
    const add = (cells) => list.append(...cells.map((each) => bulkLine(each, verdict)));
    add(found.cells);
    list.addEventListener("scroll", async () => {
      const start = list.children.length;
      if (start >= found.count || list.scrollTop + list.clientHeight < list.scrollHeight - 200 || list.dataset.loading) return;
      list.dataset.loading = "yes";
      add((await ask("alike", { ...where, by, verdict, start })).cells);
      delete list.dataset.loading;
    });
    const turn = verdict === "wrong" ? "right" : "wrong";
    const other = this.cell.alike[by][turn]
      ? el("button", { type: "button", className: "quietly", onclick: () => this.offerBulk(by, turn, flag) }, turn === "right" ? "Keep the values instead…" : "Accept the repairs instead…")
      : null;
    const name = verdict === "wrong" ? `Accept all ${number(found.count)}` : `Keep all ${number(found.count)}`;
    const go = el("button", { type: "button", className: verdict === "wrong" ? "accept" : "reject", onclick: () => this.decideBulk(by, verdict, found.count) }, name);
    openDialog(`${counted(found.count, "open cell")} of ${flag.column} ${like}`,
      el("p", {}, verdict === "wrong" ? "Each of them gets its own repair, as listed. One undo takes all back." : "All of them keep their values. One undo takes all back."),
      list, el("div", { className: "actions" }, go, ...(other ? [other] : [])));
    go.focus();
  }

  async decideBulk(by, verdict, count) {
    try {
      const done = await tell("bulk", { ...this.where, by, verdict, count });
      byId("dialog").close();
      notify(verdict === "wrong" ? `Accepted ${counted(done.cells, "repair")}.` : `Kept ${counted(done.cells, "value")}.`);
      refresh(done);
      await this.decided(this.where);
    } catch (error) {
      byId("dialog").close();
      notify(error.message, true);
    }
  }

  // ---------------------------------------------------------------- keys

  press(event) {
    if (!this.cell || this.isActing || isTyping(event)) return false;
    const deeds = { a: "accept", r: "reject", e: "edit", w: "wrong", s: this.skipped ? "skip" : "", b: "bulkFirst" };
    const deed = deeds[event.key.toLowerCase()];
    if (!deed || event.repeat) return false;
    event.preventDefault();
    this[deed]();
    return true;
  }

  bulkFirst() {
    const { alike } = this.cell;
    const by = alike && ["value", "cause"].find((each) => Math.max(alike[each].right, alike[each].wrong) > 1);
    return by ? this.bulk(by) : notify("No other open cell is like this one.");
  }

  speak() {
    const { flag, text } = this.cell;
    const proposed = flag.repair === null ? "no repair is known" : `proposed ${plain(flag.repair)}`;
    speak(`${flag.column}, row ${flag.row}: found ${plain(text)}, ${proposed}. ${flag.reason}`);
  }
}

function bulkLine(flag, verdict) {
  const repair = verdict === "wrong" ? [" → ", el("span", { className: "meant" }, shown(flag.repair))] : [];
  return el("li", {}, el("small", {}, `row ${number(flag.row)}`), " ", el("span", { className: "found" }, shown(flag.value)), ...repair);
}

function suspicionBar(suspicion) {
  const bar = el("span", { className: "length" });
  bar.style.width = percent(suspicion).replace(" ", "");
  const said = suspicion >= 0.995 ? "over 99 %" : percent(suspicion);
  return el("p", { className: "suspicion" }, el("span", { className: "room", "aria-hidden": "true" }, bar), ` ${said} suspicion`);
}

const short = (bound) => Number(bound.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6, useGrouping: Math.abs(bound) >= 1e5 });
