// What a value should be, typed in: a small form that says what is wrong with it, and where a person may insist.
import { el } from "./dom.js";

let made = 0;

// `save(text, insist)` saves it; `name` is what the button says; `onCancel` is called when it is left without.
export function targetForm({ label, value, name, save, onCancel = null }) {
  const id = `target-${(made += 1)}`;
  const input = el("input", { id, value: value ?? "", autocomplete: "off", spellcheck: false, dir: "auto" });
  const trouble = el("p", { id: `${id}-trouble`, className: "trouble", role: "alert", hidden: true });
  const insist = el("button", { type: "button", hidden: true, onclick: () => attempt(true) }, "Save it all the same");
  const submit = el("button", { type: "submit", className: "accept" }, name);
  const cancel = onCancel && el("button", { type: "button", className: "quietly", onclick: onCancel }, "Cancel");
  const form = el("form", { className: "target", onsubmit: (event) => { event.preventDefault(); attempt(false); } },
    el("label", { for: id }, ...[label].flat()), el("div", { className: "field" }, input, submit, insist, cancel), trouble);

  async function attempt(isInsisting) {
    if (form.inert) return;
    form.inert = true;
    try {
      await save(input.value, isInsisting);
    } catch (error) {
      form.inert = false;
      tell(error);
    }
    form.inert = false;
  }

  function tell(error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
    insist.hidden = !error.mayInsist;
    submit.hidden = error.mayInsist;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", trouble.id);
    (error.mayInsist ? insist : input).focus();
  }

  input.addEventListener("input", () => {
    insist.hidden = true;
    submit.hidden = false;
  });
  input.addEventListener("keydown", (event) => event.key === "Escape" && onCancel?.());
  const rename = (words) => { submit.textContent = words; };
  return { form, input, rename, focus: () => { input.focus(); input.select(); } };
}
