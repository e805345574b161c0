// The findings table: search, filter, sort, turn pages, open rows, download. Cells are only ever set as text.
"use strict";
(() => {
  const FIELDS = ["row", "column", "value", "suspicion", "repair", "reason", "cause", "line", "name", "alike"];
  const WRITTEN = FIELDS.slice(0, -1); // into a file
  const ROWS_A_PAGE = 50;
  const LONGEST_WHOLE = 16; // letters of a cell that is never broken in two
  const LONGEST_SHOWN = 90; // letters of a cell that is shown with all its lines
  const byId = (id) => document.getElementById(id);

  // A button that opens and folds all that is folded in its section.
  for (const button of document.querySelectorAll(".unfold")) {
    const folds = button.closest("section").querySelectorAll("details");
    button.addEventListener("click", () => {
      const open = button.textContent === "Open all";
      for (const fold of folds) fold.open = open;
      button.textContent = open ? "Fold all" : "Open all";
    });
    button.hidden = false;
  }
  if (!byId("data")) return; // No cell is flagged.
  const data = JSON.parse(byId("data").textContent);
  const rows = new Map(data.rows.map(([row, ...cells]) => [row, cells]));
  const findings = data.lines.map((line, rank) => {
    const finding = Object.fromEntries(FIELDS.map((field, place) => [field, line[place]]));
    const column = data.columns[finding.column];
    const where = finding.line === null ? `row ${finding.row}` : `line ${finding.line}`;
    const words = [finding.name, where, column, finding.value, finding.repair, finding.reason, finding.cause];
    return { ...finding, column, where, place: finding.column, rank, words: words.join("\n").toLowerCase() };
  });
  const byRow = Map.groupBy ? Map.groupBy(findings, (f) => f.row) : new Map();
  if (!Map.groupBy) for (const f of findings) byRow.set(f.row, [...(byRow.get(f.row) ?? []), f]);

  const controls = ["search", "column", "cause", "outcome", "suspicion"].map(byId);
  const [search, column, cause, outcome, suspicion] = controls;
  const table = byId("table");
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator("en", { numeric: true });
  let sorting = { field: "suspicion", direction: -1 };
  let found = findings;
  let alike = null; // number of the line of the overview that is shown
  let page = 0;

  // Numbers come before text, and what is not there comes last.
  const kind = (value) => (typeof value === "number" ? 0 : value === null ? 2 : 1);
  const compare = (a, b) =>
    kind(a) - kind(b) || (typeof a === "number" ? a - b : a === null ? 0 : collator.compare(a, b));

  function select() {
    const { field, direction } = sorting;
    const word = search.value.trim().toLowerCase();
    const least = Number(suspicion.value) || 0;
    found = findings
      .filter((f) => f.suspicion >= least && f.words.includes(word))
      .filter((f) => alike === null || f.alike === alike)
      .filter((f) => !column.value || f.place === Number(column.value))
      .filter((f) => !cause.value || f.cause === cause.value)
      .filter((f) => !outcome.value || (f.repair === null) === (outcome.value === "left as found"))
      .sort((a, b) => direction * compare(a[field], b[field]) || a.rank - b.rank);
    page = 0;
    show();
  }

  function show() {
    const first = page * ROWS_A_PAGE;
    const shown = found.slice(first, first + ROWS_A_PAGE);
    const pages = Math.max(1, Math.ceil(found.length / ROWS_A_PAGE));
    table.tBodies[0].replaceChildren(...shown.map(rowOf));
    byId("box").scrollTop = 0;
    byId("all").hidden = found.length === findings.length;
    byId("shown").textContent = shown.length
      ? `${number(first + 1)} to ${number(first + shown.length)} of ${number(found.length)} ${found.length === 1 ? "finding" : "findings"}`
      : "No finding matches.";
    byId("page").textContent = `Page ${number(page + 1)} of ${number(pages)}`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = page + 1 >= pages;
    byId("download").disabled = !shown.length;
    document.querySelector(".pages").hidden = pages === 1;
    for (const head of heads) {
      if (head.className !== sorting.field) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", sorting.direction > 0 ? "ascending" : "descending");
    }
  }

  function make(tag, name, ...inside) {
    const element = Object.assign(document.createElement(tag), { className: name });
    element.append(...inside);
    return element;
  }

  function rowOf(finding) {
    const row = make("tr", "");
    row.setAttribute("role", "row");
    row.append(...heads.map((head) => cellOf(head.className, finding)));
    return row;
  }

  function cellOf(field, finding) {
    const cell = make("td", field, field === "row" ? placeOf(finding) : contentOf(field, finding[field]));
    cell.setAttribute("role", "cell");
    return cell;
  }

  // Where the finding is; a button that opens its row, if that is in the page.
  function placeOf(finding) {
    const words = [...(finding.name ? [make("b", "", finding.name)] : []), make("span", "", finding.where)];
    if (!rows.has(finding.row)) return make("div", "", ...words);
    const button = make("button", "open", ...words);
    button.type = "button";
    button.title = "Show the whole row";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const line = button.closest("tr");
      const isOpen = button.getAttribute("aria-expanded") === "true";
      if (isOpen) line.nextElementSibling.remove();
      else line.after(openedRow(finding));
      button.setAttribute("aria-expanded", String(!isOpen));
    });
    return button;
  }

  // All cells of a row, the flagged ones marked, with what becomes of them.
  function openedRow(finding) {
    const cells = rows.get(finding.row);
    const flagged = new Map(byRow.get(finding.row).map((f) => [f.place, f]));
    const terms = data.opened.map((place, at) => {
      const own = flagged.get(place);
      const value = own ? own.value : cells[at];
      const said = make("dd", "", contentOf("value", value));
      if (own) said.append(" ", make("span", "repaired", own.repair === null ? "" : "→ ", contentOf("repair", own.repair)));
      const styles = [own && "marked", own === finding && "this", String(value).length > LONGEST_SHOWN && "wide"];
      return make("div", styles.filter(Boolean).join(" "), make("dt", "", data.columns[place]), said);
    });
    const hidden = data.columns.length - data.opened.length;
    const more = hidden ? ` ${number(hidden)} more columns are not shown.` : "";
    const note = make("p", "", `Row ${finding.row}, counted from 0, as in reasons and in findings.csv.${more}`);
    const cell = make("td", "", make("dl", "", ...terms), note);
    cell.colSpan = heads.length;
    cell.setAttribute("role", "cell");
    const row = make("tr", "opened", cell);
    row.setAttribute("role", "row");
    return row;
  }

  // What stands in a cell; short texts and numbers are never broken in two, of long ones the first lines are shown.
  function contentOf(field, value) {
    if (value === null) return make("i", "", { value: "missing", repair: "left as found" }[field]);
    const text = field === "suspicion" ? value.toFixed(3) : String(value);
    if (text.trim() === "") return make("i", "", "empty text");
    if (field === "suspicion" || field === "reason") return text;
    if (text.length > LONGEST_SHOWN) return Object.assign(make("span", "long", text), { title: text });
    return text.length > LONGEST_WHOLE ? text : make("span", "whole", text);
  }

  const number = (value) => value.toLocaleString("en");

  // A spreadsheet must not take a text for a formula: an apostrophe comes before what may be one.
  const isNumber = (text) => /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(text);
  const guarded = (text) => (/^'*[=+\-@\t\r]/.test(text) && !isNumber(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  function download() {
    const lines = [WRITTEN, ...found.map((f) => WRITTEN.map((field) => guarded(f[field] === null ? "" : String(f[field]))))];
    const csv = lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");
    const url = URL.createObjectURL(new Blob(["\ufeff", csv], { type: "text/csv" }));
    Object.assign(document.createElement("a"), { href: url, download: "findings.csv" }).click();
    URL.revokeObjectURL(url);
  }

  function turn(step) {
    page += step;
    show();
    if (byId("box").getBoundingClientRect().top < 0) byId("box").scrollIntoView();
  }

  for (const head of heads) {
    const field = head.className;
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    button.addEventListener("click", () => {
      const usual = field === "suspicion" ? -1 : 1;
      sorting = { field, direction: sorting.field === field ? -sorting.direction : usual };
      select();
    });
    head.replaceChildren(button);
  }
  function choose(wanted) {
    for (const control of controls) control.value = control === suspicion ? "0" : "";
    column.value = wanted.column ?? "";
    cause.value = wanted.cause ?? "";
    alike = wanted.alike === undefined ? null : Number(wanted.alike);
    select();
  }

  for (const link of document.querySelectorAll("a[data-column], a[data-cause], a[data-alike]")) {
    link.addEventListener("click", () => choose(link.dataset));
  }
  byId("all").addEventListener("click", () => {
    choose({});
    search.focus(); // The button is gone.
  });
  for (const control of controls) control.addEventListener("input", select);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("download").addEventListener("click", download);
  for (const hidden of document.querySelectorAll("#findings [hidden]")) hidden.hidden = false;
  select();
})();
