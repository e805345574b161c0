// What holds for the whole table, shared by the views; they are told when it changes.
import { ask } from "./api.js";

export const state = { version: -1 };
const listeners = [];

export const onChange = (listener) => listeners.push(listener);

// Take what an answer says of the whole and tell the views; an answer that others overtook on the way is left.
export function refresh(pulse) {
  if (pulse.version < state.version) return;
  const before = { ...state };
  Object.assign(state, pulse);
  for (const listener of listeners) listener(before);
}

export async function readState() {
  refresh(await ask("state"));
}
