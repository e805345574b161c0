// Groups of findings: by column and cause, and in them lines of cells that are to be changed in the same way. What is ticked
// is decided at once; a line can be looked into, and its single cells unticked or edited.
import { ask } from "./api.js";
import { apart, byId, chooseFrom, counted, el, notify, number, percent, plain, shown, speak, told } from "./dom.js";
import * as outbox from "./outbox.js";
import { state } from "./state.js";
import { targetForm } from "./target.js";

const list = byId("group-list");
const filters = byId("group-filters");
const ticks = new Set(); // groups and lines
const unticked = new Map(); // of lines: the rows whose cells are not to be decided, and whether each has a repair
const opened = new Map(); // lines that are looked into, with what is seen there
const forms = new Map(); // of lines and cells: what is being typed about them
const lengthened = new Map(); // of groups: how many lines are shown
let groups = [];
let found = { total: 0, cells: 0, repaired: 0, listing: 0, version: -1 };
let isActing = false;
let asked = 0; // how often it was asked: an answer that another overtook is left

const wanted = () => Object.fromEntries([...new FormData(filters)].filter(([, value]) => value !== ""));
const lineKey = (group, line) => `${group.place}/${line.place}`;
const groupKey = (group) => `${group.place}`;
const guarded = (work) => work.catch((error) => notify(error.message, true));

// ---------------------------------------------------------------- what is listed

// Ask anew for the groups that are shown, with as many lines as are shown; what is ticked and opened stays so.
async function reload({ count = Math.max(groups.length, 1) } = {}) {
  const turn = (asked += 1);
  const parts = [];
  do {
    parts.push(await ask("groups", { ...wanted(), start: parts.length ? parts.flatMap((each) => each.groups).length : 0 }));
  } while (parts.at(-1).groups.length && parts.flatMap((each) => each.groups).length < Math.min(count, parts[0].total));
  const all = parts.flatMap((each) => each.groups);
  await Promise.all(all.map(async (group) => {
    while (group.lines.length < Math.min(lengthened.get(group.place) ?? 0, group.total) && (await lengthen(group)));
  }));
  if (turn !== asked) return;
  [found, groups] = [parts[0], all];
  forgetGone();
  for (const key of opened.keys()) opened.set(key, null);
  for (const group of groups) for (const line of group.lines) for (const hasRepair of unticked.get(lineKey(group, line))?.values() ?? []) add(group, line, hasRepair, -1);
  draw();
}

async function lengthen(group) {
  const more = await ask("lines", { ...wanted(), group: group.place, start: group.lines.length });
  group.lines.push(...more.lines);
  return more.lines.length > 0;
}

// So many cells more are to be decided with a line and its group.
function add(group, line, hasRepair, count) {
  for (const sums of [group, line]) {
    sums.cells += count;
    if (hasRepair) sums.repaired += count;
  }
}

// What is decided is no longer ticked.
function forgetGone() {
  const here = new Set(groups.flatMap((group) => [groupKey(group), ...group.lines.map((line) => lineKey(group, line))]));
  for (const kept of [ticks, unticked, opened, forms]) for (const key of kept.keys()) if (!here.has(key.split(" ")[0])) kept.delete(key);
}

function draw() {
  const active = document.activeElement;
  const focused = active?.closest?.("[data-at]")?.dataset.at;
  list.replaceChildren(...groups.map(groupItem));
  byId("groups-listed").textContent = found.total
    ? `${counted(found.cells, "open cell")} in ${counted(found.total, "group")}, ${number(found.repaired)} with a repair`
    : Object.keys(wanted()).length ? "Nothing that is open fits these filters." : "Nothing that was found is open. Look through the values, or export.";
  byId("more-groups").hidden = groups.length >= found.total;
  drawBar();
  if (focused !== undefined) focusAt(focused);
  else if (list.contains(active)) active.focus({ preventScroll: true });
}

function groupItem(group) {
  const key = groupKey(group);
  const box = el("input", { type: "checkbox", checked: ticks.has(key), "aria-label": `All of ${group.column}, ${group.cause}`, onchange: () => tick(key, box.checked) });
  const more = group.total - group.lines.length;
  const lengthenIt = () => guarded(lengthen(group).then(() => { lengthened.set(group.place, group.lines.length); draw(); }));
  return el("li", { className: "group" },
    el("div", { className: "group-head", tabIndex: 0, "data-at": key },
      box, el("h3", {}, apart(group.column), " ", el("small", {}, `${group.meaning ? `${group.cause} (${group.meaning})` : group.cause} · ${counted(group.cells, "cell")}, ${counted(group.values, "value")}`)),
      el("div", { className: "ways" }, ...ways([{ group: group.place }], group, `${group.column}, ${group.cause}`))),
    el("ul", { className: "lines" }, ...group.lines.map((line) => lineItem(group, line))),
    more ? el("button", { type: "button", className: "quietly more", onclick: lengthenIt }, `${counted(more, "more line")}`) : null);
}

// Accept and Reject for what is picked; `sums` has how many cells it is, and how many of them have a repair.
function ways(picks, { cells, repaired }, what) {
  const accept = el("button", { type: "button", className: "accept", "data-deed": "accept", disabled: !repaired, onclick: () => decide(picks, "wrong", repaired, what) }, `Accept ${number(repaired)}`);
  const reject = el("button", { type: "button", className: "reject", "data-deed": "reject", title: "The values are right: keep them", onclick: () => decide(picks, "right", cells, what) }, `Reject ${number(cells)}`);
  return [accept, reject];
}

function lineItem(group, line) {
  const key = lineKey(group, line);
  const { first } = line;
  const box = el("input", {
    type: "checkbox", checked: ticks.has(groupKey(group)) || ticks.has(key), disabled: ticks.has(groupKey(group)),
    "aria-label": `${plain(first.value)}, ${counted(line.cells, "cell")}`, onchange: () => tick(key, box.checked),
  });
  const lookIn = el("button", { type: "button", className: "quietly look", "aria-expanded": opened.has(key) ? "true" : "false", onclick: () => lookInside(group, line) }, opened.has(key) ? "Close" : "Look inside");
  const edit = el("button", { type: "button", className: "quietly", "data-deed": "edit", disabled: line.rewriting !== "", onclick: () => editLine(group, line) }, "Edit");
  const item = el("li", { className: "line-of" },
    el("div", { className: "line-head", tabIndex: 0, "data-at": key },
      box, el("div", { className: "change" }, ...change(line)),
      el("span", { className: "sums" }, counted(line.cells, "cell"), line.rewriting ? `, ${counted(line.values, "value")}` : "", " ", sureness(line)),
      el("div", { className: "ways" }, ...ways([pickOf(group, line)], line, plain(first.value)), edit, lookIn)));
  if (forms.has(key)) {
    forms.get(key).rename(`Set ${counted(line.cells, "cell")}`);
    item.append(forms.get(key).form);
  }
  if (opened.has(key)) item.append(inside(group, line));
  return item;
}

function change({ rewriting, first, repaired }) {
  const pair = [el("span", { className: "found" }, shown(first.value)), " → ", el("span", { className: "meant" }, first.repair === null ? el("i", {}, "not sure enough") : shown(first.repair))];
  return rewriting ? [el("b", {}, apart(rewriting)), " ", el("small", {}, "such as ", ...pair)] : pair;
}

const sure = (share) => (share >= 0.995 ? "over 99 %" : percent(share)); // nothing is certain

function sureness({ suspicion, repair_probability: chance, repaired, first }) {
  const words = `${sure(suspicion)} suspicion`;
  return el("small", { title: `For example row ${number(first.row)}: ${first.reason}` }, repaired ? `${words}, repair ${sure(chance)}` : words);
}

// ---------------------------------------------------------------- what is ticked

const pickOf = (group, line) => ({ group: group.place, line: line.place, besides: [...(unticked.get(lineKey(group, line))?.keys() ?? [])] });

function tick(key, isTicked) {
  if (isTicked) ticks.add(key);
  else ticks.delete(key);
  draw();
}

// What is picked and how many cells it is; a line of a group that is ticked counts with the group.
function ticked() {
  const whole = groups.filter((group) => ticks.has(groupKey(group))).map((group) => [{ group: group.place }, group]);
  const single = groups.filter((group) => !ticks.has(groupKey(group)))
    .flatMap((group) => group.lines.filter((line) => ticks.has(lineKey(group, line))).map((line) => [pickOf(group, line), line]));
  const all = [...whole, ...single];
  const sum = (name) => all.reduce((total, [, sums]) => total + sums[name], 0);
  return { picks: all.map(([pick]) => pick), cells: sum("cells"), repaired: sum("repaired") };
}

function drawBar() {
  const all = ticked();
  const isAll = groups.length > 0 && groups.every((group) => ticks.has(groupKey(group)));
  Object.assign(byId("tick-all"), { checked: isAll, disabled: !groups.length });
  byId("accept-ticked").textContent = `Accept ${number(all.repaired)} ticked`;
  byId("reject-ticked").textContent = `Reject ${number(all.cells)} ticked`;
  byId("accept-ticked").disabled = !all.repaired;
  byId("reject-ticked").disabled = !all.cells;
}

// All that the filters keep, also what is not shown yet.
async function tickAll() {
  if (byId("tick-all").checked) {
    await reload({ count: found.total });
    for (const group of groups) ticks.add(groupKey(group));
  } else ticks.clear();
  draw();
}

const decideTicked = (verdict) => {
  const all = ticked();
  const count = verdict === "wrong" ? all.repaired : all.cells;
  return count ? decide(all.picks, verdict, count, counted(ticks.size, "ticked line")) : null;
};

// ---------------------------------------------------------------- deeds

// Send a deed and show what is left; while it is on its way no other is taken. `form` is what it was typed in.
async function deliver(name, deed, what, words, form = null) {
  if (isActing) return;
  isActing = true;
  try {
    await outbox.post({ name, deed, what, about: "groups", cell: null, words, isStep: true, isAwaited: true });
    forms.delete(form);
    await reload();
  } finally {
    isActing = false;
  }
}

async function decide(picks, verdict, count, what) {
  const words = ({ cells }) => (verdict === "wrong" ? `Accepted ${counted(cells, "repair")}.` : `Kept ${counted(cells, "value")}.`);
  try {
    await deliver("group", { ...wanted(), listing: found.listing, picks: picks.map(withoutRows), verdict, count }, what, words);
  } catch (error) {
    notify(error.message, true);
    await guarded(reload());
  }
}

// A group is decided without the cells that were unticked in its lines.
function withoutRows(pick) {
  if (pick.line !== undefined) return pick;
  const rows = [...unticked].filter(([key]) => key.startsWith(`${pick.group}/`)).flatMap(([, own]) => [...own.keys()]);
  return { ...pick, besides: rows };
}

// Open a form at a place, unless it is open; `typed` is what it needs besides.
function openForm(key, place, typed) {
  const close = () => { forms.get(key).form.remove(); forms.delete(key); focusAt(key); guarded(look()); };
  if (!forms.has(key)) forms.set(key, targetForm({ ...typed, onCancel: close }));
  place.append(forms.get(key).form);
  forms.get(key).focus();
}

function editLine(group, line) {
  const key = lineKey(group, line);
  const now = () => groups.find(({ place }) => place === group.place).lines.find(({ place }) => place === line.place);
  const many = () => counted(now().cells, "cell");
  openForm(key, list.querySelector(`[data-at="${key}"]`).parentElement, {
    label: told`What ${group.column} should be where it is ${plain(line.first.value)}`,
    value: line.first.repair ?? line.first.value, name: `Set ${many()}`,
    save: (text, insist) => deliver("edit", { ...wanted(), listing: found.listing, pick: pickOf(group, line), repair: text, count: now().cells, insist },
      `${many()} of ${group.column}`, ({ cells }) => told`Set ${counted(cells, "cell")} of ${group.column} to ${plain(text)}.`, key),
  });
}

// ---------------------------------------------------------------- inside a line

function lookInside(group, line) {
  const key = lineKey(group, line);
  if (!opened.delete(key)) opened.set(key, null);
  draw();
}

function inside(group, line) {
  const key = lineKey(group, line);
  if (!opened.get(key)) {
    opened.set(key, el("div", { className: "inside", role: "group", "aria-label": "The cells of this line" }));
    guarded(addCells(group, line, opened.get(key)));
  }
  return opened.get(key);
}

async function addCells(group, line, box) {
  box.querySelector(".more")?.remove();
  const start = box.children.length;
  const { total, cells } = await ask("line", { ...wanted(), group: group.place, line: line.place, start });
  box.append(...cells.map((cell) => cellItem(group, line, cell)));
  const left = total - box.children.length;
  if (left > 0) box.append(el("button", { type: "button", className: "quietly more", onclick: () => guarded(addCells(group, line, box)) }, `${counted(left, "more cell")}`));
}

function cellItem(group, line, cell) {
  const key = lineKey(group, line);
  const out = unticked.get(key) ?? new Map();
  const box = el("input", { type: "checkbox", checked: !out.has(cell.row), "aria-label": `Row ${number(cell.row)}`, onchange: () => untick(group, line, cell, !box.checked) });
  const formKey = `${key} ${cell.row}`;
  const edit = el("button", { type: "button", className: "quietly", onclick: () => editCell(group, cell, formKey, item) }, "Edit");
  const others = cell.others.map(([name, text]) => el("span", { title: name }, apart(plain(text))));
  const item = el("div", { className: "inside-cell" },
    el("div", { className: "inside-head" }, el("label", {}, box, el("small", {}, `row ${number(cell.row)}`)),
      el("div", { className: "change" }, ...change({ first: cell })), edit),
    el("p", { className: "others" }, ...others), forms.get(formKey)?.form);
  return item;
}

// A cell that is unticked is not decided with its line or group.
function untick(group, line, cell, isOut) {
  const key = lineKey(group, line);
  const rows = unticked.get(key) ?? new Map();
  if (isOut) rows.set(cell.row, cell.repair !== null);
  else rows.delete(cell.row);
  unticked.set(key, rows);
  add(group, line, cell.repair !== null, isOut ? -1 : 1);
  draw();
}

function editCell({ column }, cell, key, item) {
  openForm(key, item, {
    label: told`What ${column} of row ${number(cell.row)} should be`, value: cell.repair ?? cell.value, name: "Save",
    save: (text, insist) => deliver("decide", { row: cell.row, column, value: cell.text, verdict: "wrong", repair: text, seen: null, insist },
      `row ${number(cell.row)}, ${column}`, () => told`Saved: ${column} of row ${number(cell.row)} becomes ${plain(text)}.`, key),
  });
}

// ---------------------------------------------------------------- keys

const stops = () => [...list.querySelectorAll("[data-at]")];

// The line with this key has the focus, or what stands in its place now.
function focusAt(key) {
  const all = stops();
  const at = all.findIndex((each) => each.dataset.at === key);
  const next = all[at >= 0 ? at : Math.min(lastPlace, all.length - 1)];
  next?.focus({ preventScroll: at >= 0 });
  if (at < 0 && next) speak(next.innerText);
}

let lastPlace = 0;
list.addEventListener("focusin", (event) => {
  const here = stops().indexOf(event.target.closest("[data-at]"));
  if (here >= 0) lastPlace = here;
});

const DEEDS = { a: "accept", r: "reject", e: "edit" };

export function press(event) {
  const here = event.target.closest?.("[data-at]");
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (move) {
    const all = stops();
    const at = here ? all.indexOf(here) + move : lastPlace;
    all[Math.min(Math.max(at, 0), all.length - 1)]?.focus();
  } else if (event.key === " " && here && event.target === here) here.querySelector("input").click();
  else if (event.key === "Enter" && event.target === here) here.querySelector(".look")?.click();
  else {
    const deed = DEEDS[event.key.toLowerCase()];
    if (!deed || event.repeat) return false;
    if (ticks.size && deed !== "edit") decideTicked(deed === "accept" ? "wrong" : "right");
    else here?.querySelector(`[data-deed="${deed}"]`)?.click();
  }
  event.preventDefault();
  return true;
}

// ---------------------------------------------------------------- the view

export async function open() {
  chooseFrom(filters.elements.only, state.columns.filter(({ flagged }) => flagged).map(({ name, flagged }) => [name, `${name} (${number(flagged)})`]));
  chooseFrom(filters.elements.cause, state.causes.map((cause) => [cause, cause]));
  await reload();
}

// Another tab, or learning, has changed something; nothing moves while somebody types.
export async function look() {
  if (found.version !== state.version && !forms.size) await reload();
}

export async function undo({ answered }) {
  await answered;
  await reload();
}

outbox.on("acknowledged", ({ name }) => name === "repeat" && !byId("groups").hidden && guarded(reload()));

let typing = null;
filters.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    ticks.clear();
    groups = [];
    guarded(reload());
  }, 150);
});
filters.addEventListener("submit", (event) => event.preventDefault());
byId("tick-all").addEventListener("change", () => guarded(tickAll()));
byId("accept-ticked").addEventListener("click", () => decideTicked("wrong"));
byId("reject-ticked").addEventListener("click", () => decideTicked("right"));
const showMore = () => guarded(reload({ count: groups.length + 1 }));
byId("more-groups").addEventListener("click", showMore);
new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && !byId("more-groups").hidden && showMore()).observe(byId("more-groups"));
