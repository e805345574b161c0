"""What a column says about a text: how usual its form is, its letters, its words, and what is spelled nearly so."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.posterior import forms
from cellmend.posterior.formats import FORMATS
from cellmend.posterior.known import Floats, Known, log_share_of_others
from cellmend.posterior.priors import FARTHEST
from cellmend.posterior.spelling import Words, nearest


class Evidence(Protocol):
    """One sort of evidence about texts: a few figures each, worked out once per different text of a column."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each figure is."""

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        """Figures of each text in that column, (T, names)."""


def log_share(cells: Floats, known: Known) -> Floats:
    """Log of a share of the column's cells, the judged cell itself left out."""
    return log_share_of_others(cells, known.cells)


def share_alike(known: Known, here: NDArray[np.bool_], there: NDArray[np.bool_]) -> Floats:
    """Log of the share of other cells of which a test says the same: it says `here` of the texts that are asked about,
    (T,), and `there` of the known ones, (U,)."""
    cells = float(known.counts[there].sum())
    return log_share(np.where(here, cells, known.counts.sum() - cells), known)


class Frequency:
    """How often the text itself stands in the column."""

    names = ("log_count", "log_share", "once")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        count = known.count_of(texts)
        return np.stack([np.log(count), log_share(count, known), count == 1], axis=1)


class Forms:
    """How many cells have the same form: shape, length, outline, case, digits, words, symbols, letters at the ends."""

    of_shapes = (
        forms.outline,
        forms.case,
        forms.digits,
        forms.decimals,
        forms.words,
        forms.symbols,
        forms.first_letter,
        forms.last_letter,
    )
    names = ("share_of_shape", "share_of_length", *(f"share_of_{form.__name__}" for form in of_shapes))

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        coded = forms.shape(texts).dictionary_encode()
        shapes, place = coded.dictionary.cast(pa.string()), coded.indices.to_numpy(zero_copy_only=False)
        found = [known.shapes.total(form, shapes)[place] for form in (None, *self.of_shapes)]
        cells = [found[0], known.total(forms.length, texts), *found[1:]]
        return np.stack([log_share(each, known) for each in cells], axis=1)


class Variants:
    """Is the same written otherwise more often: another case, other spaces, signs or accents, or letters for digits?"""

    of_forms = (forms.folded, forms.bare, forms.alike)
    names = (
        *(f"{form.__name__}_{figure}" for form in of_forms for figure in ("more", "log_most")),
        "is_mojibake",
        "unmixed_known",
    )

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        own = known.count_of(texts)
        found = []
        for form in self.of_forms:
            most = np.maximum(known.most(form, texts), own)
            found += [np.log(most / own), np.log(most) * (most > own)]
        mixed = forms.matches(texts, forms.MOJIBAKE)
        unmixed = pa.array(
            [forms.unmixed(t) if m else "" for t, m in zip(texts.to_pylist(), mixed.tolist(), strict=True)]
        )
        again = np.where(mixed, known.total(forms.folded, unmixed.cast(pa.string())), 0.0) if mixed.any() else 0.0 * own
        return np.stack([*found, mixed, np.log1p(again)], axis=1)


class Lookalikes:
    """Would more cells be written like it if letters that look like digits were digits, or digits in words letters?"""

    names = ("shape_if_digits", "outline_if_letters")
    readings = (forms.LOOKALIKES[:2], forms.LOOKALIKES)  # O and l alone, which are common, or all of them

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        shapes = forms.shape(texts)
        digits = [forms.shape(forms.as_digits(texts, some)) for some in self.readings]
        gains = [_gain(known, None, shapes, changed) for changed in digits]
        letters = _gain(known, forms.outline, shapes, forms.as_letters(shapes))
        return np.stack([np.max(gains, axis=0), letters], axis=1)


def _gain(known: Known, form: forms.Form | None, shapes: pa.StringArray, changed: pa.StringArray) -> Floats:
    """Log of how many more cells have the form of the changed shapes, (T,); 0 where nothing was changed."""
    before, after = (known.shapes.total(form, each) for each in (shapes, changed))
    gain = log_share(after + 1, known) - log_share(before, known)
    return np.where(pc.equal(shapes, changed).to_numpy(zero_copy_only=False), 0.0, gain)


class Signs:
    """Signs of trouble by themselves: spaces around, placeholders, sentinels, the column's own name, doubled text; and
    how many other cells are alike in that."""

    tests = (
        "spaced",
        "placeholder",
        "sentinel",
        "no_letters",
        "is_number",
        "number_if_digits",
        "has_digit",
        "has_letter",
        "ascii",
    )
    names = (*tests, *(f"share_{name}" for name in tests), "is_header", "doubled", "impossible_date")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        here, there = self._tests(known, texts), self._tests(known, known.texts)
        header = pc.equal(forms.folded(texts), forms.folded(pa.array([known.name]))[0])
        each = [
            *here,
            *(share_alike(known, own, theirs) for own, theirs in zip(here, there, strict=True)),
            header.to_numpy(zero_copy_only=False),
            np.array([_is_doubled(text) for text in texts.to_pylist()], dtype=bool),
            forms.impossible(texts) if known.holds_dates else np.zeros(len(texts)),
        ]
        return np.stack([np.asarray(one, dtype=np.float64) for one in each], axis=1)

    @staticmethod
    def _tests(known: Known, texts: pa.StringArray) -> list[NDArray[np.bool_]]:
        """Of which texts each test says yes, (T,)."""
        shapes, number = forms.shape(texts), np.isfinite(known.read(texts))
        digits = ~number & np.isfinite(forms.numbers(forms.as_digits(texts))) & forms.matches(texts, r"\d|^.$")
        return [
            forms.matches(texts, r"^\s|\s$|\s\s|\x{A0}|[\t\r\n]"),
            forms.matches(texts, forms.PLACEHOLDER),
            forms.matches(texts, forms.SENTINEL),
            ~forms.matches(shapes, "[Aa9]"),
            number,
            digits,
            forms.matches(shapes, "9"),
            forms.matches(shapes, "[Aa]"),
            forms.matches(texts, r"^[\x00-\x7F]*$"),
        ]


def _is_doubled(text: str) -> bool:
    half = len(text) // 2
    return half > 1 and (text[:half] == text[-half:] and len(text) - 2 * half <= 1)


class Cases:
    """Is it written in small letters, in capitals, or with the two swapped, and how many other cells are alike?"""

    of_shapes = ("^[^A]*a[^A]*$", "^[^a]*A[^a]*$", "(^|[^Aa])a(AA|A$)")
    names = ("small", "share_small", "capital", "share_capital", "swapped", "share_swapped")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        figures = []
        for test in self.of_shapes:
            here, there = (forms.matches(forms.shape(each), test) for each in (texts, known.texts))
            figures += [here.astype(np.float64), share_alike(known, here, there)]
        return np.stack(figures, axis=1)


class Letters:
    """Its rarest letter and pair of letters, and how usual its pairs are on the whole, by the other texts."""

    names = ("rarest_letter", "rarest_pair", "second_pair", "mean_pair")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        ours, of_texts = _pairs_of(known.texts), _pairs_of(texts)
        is_known = pc.is_in(texts, value_set=known.texts).to_numpy(zero_copy_only=False)
        found = []
        for which in (0, 1):  # letters, then pairs
            keys, item = of_texts[which], of_texts[2]
            often = _texts_with(ours[which], ours[2], keys) - is_known[item]  # but for the text itself
            logs = np.log((np.maximum(often, 0) + 0.5) / (len(known.texts) + 0.5))
            found.append(_lowest_two(logs, item, len(texts)))
        total = np.bincount(of_texts[2], weights=logs, minlength=len(texts))
        mean = total / np.maximum(np.bincount(of_texts[2], minlength=len(texts)), 1)
        return np.stack([found[0][0], *found[1], mean], axis=1)


def _pairs_of(texts: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Codes of all letters, of each with the one before, and which text each belongs to, (M,)."""
    plain = forms.without_digits(texts)
    joined = "\n".join(["", *plain.to_pylist(), ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.int64)
    breaks = codes == 10
    item = np.cumsum(breaks)[1:] - 1  # the break at the end belongs to the text before it
    item = np.where(breaks[1:], item - 1, item)
    letter, before = codes[1:], codes[:-1]
    kept = (item >= 0) & (item < len(texts))
    return letter[kept], (before * 1_114_112 + letter)[kept], item[kept]


def _texts_with(keys: NDArray[np.int64], item: NDArray[np.int64], asked: NDArray[np.int64]) -> Floats:
    """How many texts have each key."""
    different, index = np.unique(keys, return_inverse=True)
    pairs = np.unique(index * (int(item.max(initial=0)) + 1) + item) // (int(item.max(initial=0)) + 1)
    counts = np.bincount(pairs, minlength=len(different))
    if not len(different):
        return np.zeros(len(asked))
    place = np.minimum(np.searchsorted(different, asked), len(different) - 1)
    return np.where(different[place] == asked, counts[place], 0).astype(np.float64)


def _lowest_two(values: Floats, item: NDArray[np.int64], size: int) -> tuple[Floats, Floats]:
    """The lowest and the second lowest value of each item, (size,)."""
    order = np.lexsort((values, item))
    starts = np.searchsorted(item[order], np.arange(size))
    padded = np.append(values[order], [0.0, 0.0])
    owner = np.append(item[order], [-1, -1])
    here = np.arange(size)
    return tuple(np.where(owner[starts + n] == here, padded[starts + n], 0.0) for n in (0, 1))  # type: ignore[return-value]


class Spelling:
    """A more frequent text, and for its words a more frequent word, that differs in a letter or two."""

    names = (
        "text_near",
        "text_near_count",
        "text_distance",
        "text_only_digits",
        "rarest_word",
        "word_near",
        "word_near_count",
        "word_distance",
        "word_length",
        "word_elsewhere",
    )

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        asked, ours, counts = texts.to_pylist(), known.texts.to_pylist(), known.counts.astype(np.float64)
        near = nearest(asked, ours, counts)
        own, has = known.count_of(texts), near.place >= 0
        often = np.where(has, counts[near.place] if len(counts) else 0.0, 1.0)
        letters = [_letters(text) for text in asked]
        digits = [h and letters[at] == _letters(ours[near.place[at]]) for at, h in enumerate(has.tolist())]
        whole = [np.log(often / own) * has, np.log(often) * has, near.distance, np.array(digits, dtype=np.float64)]
        return np.stack([*whole, *self._words(known, asked, ours, counts)], axis=1)

    @staticmethod
    def _words(known: Known, asked: list[str], ours: list[str], counts: Floats) -> list[Floats]:
        """The rarest word of each text, and the strongest hint that one of its words is misspelled, (T,) each."""
        learned, here = Words.of(ours), Words.of(asked)
        cells = learned.counts(counts)
        place = {word: at for at, word in enumerate(learned.words)}
        own = np.array([cells[place[word]] if word in place else 0.0 for word in here.words])
        near = nearest(here.words, learned.words, cells)
        has = near.place >= 0
        often = np.where(has, cells[near.place] if len(cells) else 0.0, 1.0)
        hint = np.where(has, np.log(often / np.maximum(own, 1)), 0.0) if len(own) else own
        rarest, strongest = np.zeros(len(asked)), np.zeros(len(asked))
        of_word = np.log((np.maximum(own - 1, 0) + 0.5) / (known.cells + 0.5)) if len(own) else own
        np.minimum.at(rarest, here.text, of_word[here.word])
        np.maximum.at(strongest, here.text, hint[here.word])
        best = np.full(len(asked), -1, dtype=np.int64)
        is_best = hint[here.word] == strongest[here.text]
        best[here.text[is_best]] = here.word[is_best]
        chosen = (best >= 0) & (strongest > 0)
        lengths = np.array([len(word) for word in here.words] or [0], dtype=np.float64)
        of_best = [
            np.append(each, 0.0)[np.where(chosen, best, -1)] for each in (np.log(often), near.distance, lengths, own)
        ]
        return [rarest, strongest, of_best[0], of_best[1], of_best[2], np.log1p(of_best[3])]


def _letters(text: str) -> str:
    return "".join(letter for letter in text if not letter.isdigit())


class Beginnings:
    """Does it begin or end other texts of the column, as what was cut off does?"""

    names = ("begins", "begins_share", "ends")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        asked, counts = texts.to_pylist(), known.counts.astype(np.float64)
        ours = known.texts.to_pylist()
        begins, ends = (
            _cells_with_prefix([way(t) for t in asked], [way(t) for t in ours], counts)
            for way in (lambda t: t[: forms.LONGEST], lambda t: t[::-1][: forms.LONGEST])
        )
        own = known.total(None, texts)
        longer = [np.log1p(np.maximum(found - own, 0.0)) for found in (begins, ends)]
        return np.stack([longer[0], np.log((begins - own).clip(0) / known.cells + 1e-4), longer[1]], axis=1)


def _cells_with_prefix(asked: list[str], ours: list[str], counts: Floats) -> Floats:
    """Cells whose text begins with each text asked about, (T,)."""
    order = np.array(sorted(range(len(ours)), key=ours.__getitem__), dtype=np.int64)
    ordered, cells = np.array([ours[at] for at in order.tolist()], dtype=object), np.append(0.0, counts[order].cumsum())
    low = np.searchsorted(ordered, np.array(asked, dtype=object), side="left")
    high = np.searchsorted(ordered, np.array([text + "\U0010ffff" for text in asked], dtype=object), side="left")
    return cells[high] - cells[low]


class Formats:
    """Does it keep the format that most of its column keep, and how many others do as it does?"""

    names = ("share_of_format", "share_in_format")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        format_, share = known.format
        cells, all_cells = share * known.counts.sum(), known.counts.sum()
        alike = log_share(np.where(FORMATS[format_](texts), cells, all_cells - cells), known)
        return np.stack([alike * (share > 0), np.full(len(texts), cells / max(known.cells, 1))], axis=1)


class Whole:
    """What the column is like on the whole: size, variety, gaps, how long its texts are."""

    names = ("log_cells", "log_different", "variety", "share_once", "gaps", "mean_length", "top_share", "is_date")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        counts, cells = known.counts, max(known.cells, 1)
        figures = [
            np.log1p(known.cells),
            np.log1p(len(counts)),
            len(counts) / cells,
            float((counts == 1).sum() / cells),
            1 - known.cells / max(known.rows, 1),
            np.log1p(float(np.average(pc.utf8_length(known.texts).to_numpy(zero_copy_only=False), weights=counts)))
            if len(counts)
            else 0.0,
            float(counts.max(initial=0) / cells),
            float(known.holds_dates),
        ]
        return np.tile(np.array(figures), (len(texts), 1))


def bounded(figures: Floats) -> Floats:
    """Figures within FARTHEST, and 0 for what could not be worked out."""
    return np.clip(np.nan_to_num(figures, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)
