// Small helpers. Text of the table is only ever set as text: nothing here takes markup.
const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);
export const number = (value) => value.toLocaleString("en");
export const percent = (share) => `${Math.round(100 * share)} %`;
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

// A new element: its properties (on... are listeners, aria-... and data-... attributes), then its children.
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  fill(made, properties, children);
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function fill(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
}

// A button with its key, which is not read out as part of its name. The second click of two means the same as the first:
// it must not be about what stands there by then.
export function action(name, key, style, onclick, disabled = false) {
  const hint = key ? el("kbd", { "aria-hidden": "true" }, key) : null;
  return el("button", { type: "button", className: style, onclick: (event) => event.detail < 2 && onclick(), disabled, "aria-keyshortcuts": key ?? null }, `${name} `, hint);
}

// Text of the table, which may run from right to left, without disturbing the line in which it stands.
export const apart = (text) => el("bdi", {}, text);

// A sentence with texts of the table in it: told`Kept: ${column} stays ${text}.`
export const told = (words, ...texts) => words.flatMap((word, place) => (place < texts.length ? [word, apart(texts[place])] : [word]));

// The text of a cell, also if nothing would be seen of it.
export function shown(text) {
  if (text === null || text === undefined) return el("i", {}, "missing");
  return text.trim() === "" ? el("i", {}, text === "" ? "empty" : "spaces only") : apart(text);
}

export const plain = (text) => (text === null || text === undefined ? "missing" : text.trim() === "" ? "empty" : text);

// Say something above all views: a text, or the parts of a sentence.
export function notify(sentence, isTrouble = false) {
  const notice = byId("notice");
  notice.replaceChildren(...[sentence].flat());
  notice.classList.toggle("trouble", isTrouble);
}

export function speak(sentence) {
  byId("spoken").textContent = sentence;
}

// Let a person choose one of these values, each with its words, or any; what was chosen stays.
export function chooseFrom(select, entries, any = "any") {
  const chosen = select.value;
  select.replaceChildren(el("option", { value: "" }, any), ...entries.map(([value, words]) => el("option", { value }, words)));
  select.value = chosen;
}

// Is a key being typed into something, so that it is no command?
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input:not([type=checkbox]), select, textarea, dialog[open]");
}

export function openDialog(heading, ...children) {
  const dialog = byId("dialog");
  const closed = dialog.onclose; // what was to come after the one that this takes the place of
  dialog.onclose = null;
  if (dialog.open) closed?.();
  const close = el("button", { type: "button", onclick: () => dialog.close() }, "Close");
  dialog.replaceChildren(el("h2", { id: "dialog-heading" }, ...[heading].flat()), ...children, el("p", { className: "ends" }, close));
  if (!dialog.open) dialog.showModal();
  return dialog;
}
