// The findings table: search, filter, sort and turn pages. Cells are only ever set as text.
"use strict";
(() => {
  const FIELDS = ["row", "column", "value", "suspicion", "repair", "reason"];
  const ROWS_A_PAGE = 50;
  const byId = (id) => document.getElementById(id);
  if (!byId("data")) return; // No cell is flagged.
  const data = JSON.parse(byId("data").textContent);
  const findings = data.lines.map((line, rank) => {
    const finding = Object.fromEntries(FIELDS.map((field, place) => [field, line[place]]));
    const column = data.columns[finding.column];
    const words = [finding.row, column, finding.value, finding.repair, finding.reason];
    return { ...finding, column, place: finding.column, rank, words: words.join("\n").toLowerCase() };
  });

  const [search, column, suspicion] = ["search", "column", "suspicion"].map(byId);
  const table = byId("table");
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator("en", { numeric: true });
  let sorting = { field: "suspicion", direction: -1 };
  let found = findings;
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
      .filter((f) => f.suspicion >= least && (!column.value || f.place === Number(column.value)) && f.words.includes(word))
      .sort((a, b) => direction * compare(a[field], b[field]) || a.rank - b.rank);
    page = 0;
    show();
  }

  function show() {
    const first = page * ROWS_A_PAGE;
    const shown = found.slice(first, first + ROWS_A_PAGE);
    const pages = Math.max(1, Math.ceil(found.length / ROWS_A_PAGE));
    table.tBodies[0].replaceChildren(...shown.map(rowOf));
    byId("shown").textContent = shown.length
      ? `${number(first + 1)} to ${number(first + shown.length)} of ${number(found.length)} findings`
      : "No finding matches.";
    byId("page").textContent = `Page ${number(page + 1)} of ${number(pages)}`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = page + 1 >= pages;
    for (const head of heads) {
      if (head.className !== sorting.field) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", sorting.direction > 0 ? "ascending" : "descending");
    }
  }

  function rowOf(finding) {
    const row = document.createElement("tr");
    row.setAttribute("role", "row");
    row.append(...heads.map((head) => cellOf(head.className, finding[head.className])));
    return row;
  }

  function cellOf(field, value) {
    const cell = document.createElement("td");
    cell.className = field;
    cell.setAttribute("role", "cell");
    const absent = value === null ? { value: "missing", repair: "left as found" }[field] : String(value).trim() === "" && "empty text";
    if (absent) cell.append(Object.assign(document.createElement("i"), { textContent: absent }));
    else cell.textContent = field === "suspicion" ? value.toFixed(3) : value;
    return cell;
  }

  const number = (value) => value.toLocaleString("en");

  function turn(step) {
    page += step;
    show();
    if (table.getBoundingClientRect().top < 0) table.scrollIntoView();
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
  for (const link of document.querySelectorAll("a[data-column]")) {
    link.addEventListener("click", () => {
      column.value = link.dataset.column;
      search.value = "";
      suspicion.value = "0";
      select();
    });
  }
  for (const control of [search, column, suspicion]) control.addEventListener("input", select);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  for (const hidden of document.querySelectorAll("#findings [hidden]")) hidden.hidden = false;
  select();
})();
