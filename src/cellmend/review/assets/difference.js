// Which words of a long text differ from those of another one.
import { apart, el, shown } from "./dom.js";

export const LONG = 40; // letters from which on a text is set smaller, and its words are compared
const MOST_WORDS = 200;

export const isLong = (text) => (text ?? "").length >= LONG;

// A text for the page; if it is long, the words that the other text has not at that place are marked.
export function compared(text, other) {
  if (!isLong(text) || !other) return [shown(text)];
  const [words, others] = [text.split(/(?<=\s)/), other.split(/(?<=\s)/)];
  if (words.length > MOST_WORDS || others.length > MOST_WORDS) return [apart(text)];
  const kept = inBoth(words, others);
  const parts = words.flatMap((word, place) => (kept.has(place) ? [word] : [el("mark", {}, word.trimEnd()), word.slice(word.trimEnd().length)]));
  return [el("bdi", {}, ...parts)];
}

// A reason without the long texts that stand above it.
export function brief(reason, text, repair) {
  const without = (said, long, name) => (isLong(long) ? said.replaceAll(long, name) : said);
  return without(without(reason, text, "as found"), repair, "as proposed");
}

// A sentence in which each of these texts that runs from right to left stands apart, so that the others keep their places.
export function isolated(sentence, texts) {
  const rightToLeft = texts.filter((text) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(text ?? ""));
  return rightToLeft.reduce((parts, text) => parts.flatMap((part) => (typeof part === "string" ? around(part, text) : [part])), [sentence]);
}

const around = (sentence, text) => sentence.split(text).flatMap((part, place) => (place ? [apart(text), part] : [part]));

// The places of the words that two texts have in the same order: their longest common subsequence.
function inBoth(words, others) {
  const same = (one, other) => words[one].trim() === others[other].trim();
  const longest = Array.from({ length: words.length + 1 }, () => new Array(others.length + 1).fill(0));
  for (let one = words.length - 1; one >= 0; one--) {
    for (let other = others.length - 1; other >= 0; other--) {
      longest[one][other] = same(one, other)
        ? longest[one + 1][other + 1] + 1
        : Math.max(longest[one + 1][other], longest[one][other + 1]);
    }
  }
  const kept = new Set();
  for (let one = 0, other = 0; one < words.length && other < others.length; ) {
    if (same(one, other)) {
      kept.add(one++);
      other++;
    } else if (longest[one + 1][other] >= longest[one][other + 1]) one++;
    else other++;
  }
  return kept;
}
