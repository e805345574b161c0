// What other rows say of a cell, beside it: a sentence, and some of the rows with their lines in the file.
import { isolated } from "./difference.js";
import { el, number, shown } from "./dom.js";

const placeOf = ({ row, line }) => (line === null || line === undefined ? `row ${number(row)}` : `line ${number(line)}`);

export function witnesses({ witnesses: heard, flag, text }) {
  if (heard === null) return [el("p", { className: "quiet" }, "Told as soon as the model is read.")];
  if (!heard.length) return [el("p", { className: "quiet" }, "No other row speaks about this cell.")];
  return [el("ul", { className: "witnesses" }, ...heard.map((each) => witness(each, [text, flag.repair, each.says])))];
}

function witness({ words, rows }, texts) {
  const lines = rows.map((row) => el("li", {}, el("small", {}, placeOf(row)), " ", shown(row.text)));
  return el("li", {}, el("p", {}, ...isolated(words, texts)), ...(lines.length ? [el("ul", {}, ...lines)] : []));
}
