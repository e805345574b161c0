// All steps, and back to any of them.
import { ask } from "./api.js";
import { apart, byId, counted, el, notify, openDialog } from "./dom.js";
import * as outbox from "./outbox.js";

// Show the steps; `changed` is called once some of them were undone.
export async function show(changed) {
  const list = el("ol", { className: "listed", tabIndex: 0, "aria-label": "Steps, the last one first" });
  const more = el("button", { type: "button", className: "quietly", onclick: () => add().catch(tellTrouble) });
  const found = { last: 0, above: 0 };

  async function add() {
    const { total, steps } = await ask("history", { start: list.children.length });
    if (!list.children.length) found.last = steps[0]?.step;
    list.append(...steps.map(stepItem));
    const left = total - list.children.length;
    more.hidden = !left;
    more.textContent = counted(left, "earlier step");
    return total;
  }

  function stepItem({ step, what }) {
    const isLast = step === found.last;
    const name = isLast ? "now" : "Back to here";
    return el("li", {}, el("span", {}, apart(what)), " ", isLast ? el("small", {}, name) : el("button", { type: "button", className: "quietly", onclick: () => back(step) }, name));
  }

  async function back(step) {
    byId("dialog").close();
    try {
      await outbox.post({ name: "back", deed: { step, last: found.last }, what: "several steps", cell: null, words: ({ steps }) => `Undone: ${counted(steps, "step")}.`, isAwaited: true });
      outbox.forgetSteps();
      await changed();
    } catch (error) {
      tellTrouble(error);
    }
  }

  if (!(await add())) return notify("Nothing was done yet.");
  const begin = el("button", { type: "button", onclick: () => back(0) }, "Back to the beginning");
  return openDialog("Steps", el("p", {}, "The last one first. To go back undoes all that was done after it."), list, more, el("div", { className: "ways" }, begin));
}

const tellTrouble = (error) => notify(error.message, true);
