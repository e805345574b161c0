// After a decision about one cell: the same for the others with its value?
import { ask } from "./api.js";
import { byId, counted, el, notify, plain, told } from "./dom.js";
import * as outbox from "./outbox.js";

const offer = byId("same");
let turns = 0; // how often something was decided: an offer that another decision overtook is left

outbox.on("acknowledged", ({ name, deed, cell, answer }) => {
  turns += 1;
  offer.replaceChildren();
  if (name === "decide" && answer.step) propose(deed, cell).catch((error) => notify(error.message, true));
});

async function propose({ row, column }, cell) {
  const turn = turns;
  const { count, value } = await ask("same", { row, column });
  if (turn !== turns || !count) return;
  const others = `${count === 1 ? "1 other cell holds" : `${counted(count, "other cell").replace(" cells", " cells hold")}`}`;
  const repeat = () => repeatFor({ row, column, count }, cell).catch((error) => notify(error.message, true));
  offer.append(...told`${others} ${plain(value)}. `, el("button", { type: "button", onclick: repeat, "aria-keyshortcuts": "M" }, "The same for them ", el("kbd", { "aria-hidden": "true" }, "M")));
}

async function repeatFor(deed, cell) {
  const what = `${counted(deed.count, "cell")} of ${deed.column}`;
  await outbox.post({ name: "repeat", deed, what, about: cell ? null : "groups", cell, words: ({ cells }) => told`Decided ${counted(cells, "cell")} of ${deed.column} alike.`, isStep: true, isAwaited: true });
}

// Take what is offered, if anything is.
export const take = () => offer.querySelector("button")?.click();
