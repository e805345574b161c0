from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save as safetensors_save

from cellmend import CellMender, ModelFileError, Schema, load
from cellmend.model.file import KEY, read_parts, write_parts
from tests.conftest import SMALL, mixed_table


@pytest.fixture(scope="module")
def path(fitted: CellMender, tmp_path_factory):
    file = tmp_path_factory.mktemp("models") / "m.cellmend"
    fitted.save(file)
    return file


def test_answers_after_loading_are_bit_equal(fitted: CellMender, path, table) -> None:
    loaded = load(path)
    for kind in ("pi", "nll"):
        np.testing.assert_array_equal(loaded.cell_scores(table, kind), fitted.cell_scores(table, kind))
    assert loaded.findings(table).equals(fitted.findings(table))
    assert loaded.repair(table).equals(fitted.repair(table))
    assert loaded.reconstruct(table, "map").equals(fitted.reconstruct(table, "map"))
    np.testing.assert_array_equal(loaded.predict(table), fitted.predict(table))
    assert loaded.schema_ == fitted.schema_
    assert loaded.history_ == fitted.history_


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"weights": "amortized", "hide": 0.0},
        {"weights": "none"},
        {"networks": 2},
        {"repair_method": "two-stage", "kl_weight": 1.0},
    ],
)
def test_every_kind_of_network_is_kept(settings, tmp_path) -> None:
    table = mixed_table().drop(columns=["id", "country"])
    mender = CellMender(**SMALL, **settings, schema={"rating": "real"}).fit(table)
    mender.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.cell_scores(table), mender.cell_scores(table))
    np.testing.assert_array_equal(loaded.cell_suspicion(table), mender.cell_suspicion(table))
    assert loaded.get_params() == mender.get_params() | {"schema": Schema.from_dict({"rating": "real"})}


def test_settings_of_numpy_are_kept(tmp_path) -> None:
    table = mixed_table().drop(columns=["id", "country"])
    settings = SMALL | {"epochs": np.int64(2), "alpha": np.float64(0.9), "random_state": np.int64(1)}
    CellMender(**settings).fit(table).save(tmp_path / "m")
    assert load(tmp_path / "m").get_params() == CellMender(**settings).get_params()


def test_a_model_from_a_device_that_is_not_here_is_loaded_all_the_same(path, tmp_path) -> None:
    header, weights = read_parts(path)
    header["settings"]["device"] = "cuda:97"
    write_parts(tmp_path / "m", header, weights)
    assert load(tmp_path / "m").device == "auto"


@pytest.mark.parametrize("target", ["missing/m", "."])
def test_a_place_that_cannot_hold_the_file_is_named(fitted: CellMender, tmp_path, target: str) -> None:
    with pytest.raises(ModelFileError, match="must be saved as a file in a folder that is there"):
        fitted.save(tmp_path / target)


def test_the_file_holds_no_code_and_its_header_is_json(path) -> None:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
    assert header["format"] == 3
    assert {"schema", "settings", "versions", "columns", "sha256"} <= set(header)


def test_the_same_model_gives_the_same_bytes(fitted: CellMender, path, tmp_path) -> None:
    fitted.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_every_flipped_byte_is_noticed(path, tmp_path) -> None:
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(0, 64, 7), *rng.integers(0, len(content), 40)]:
        damaged = bytearray(content)
        damaged[place] ^= 1
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(tmp_path / "damaged")


@pytest.mark.parametrize("keep", [0, 5, 100, 0.5, 0.999])
def test_a_truncated_file_is_one_sentence(path, tmp_path, keep: float) -> None:
    content = path.read_bytes()
    (tmp_path / "cut").write_bytes(content[: keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(ModelFileError, match=r"must be a whole file written by CellMender\.save; cut is not") as caught:
        load(tmp_path / "cut")
    assert "Error" not in str(caught.value).partition(".save")[2].replace("SafetensorError", "")


def test_a_file_with_something_after_its_end_is_refused(path, tmp_path) -> None:
    (tmp_path / "long").write_bytes(path.read_bytes() + b"more")
    with pytest.raises(ModelFileError, match="must be a whole file"):
        load(tmp_path / "long")


@pytest.mark.parametrize(
    "content",
    [
        b"just text, no model at all",
        struct.pack("<Q", 2**62) + b"{}",
        safetensors_save({"a": torch.zeros(2)}),
        safetensors_save({"a": torch.zeros(2)}, metadata={KEY: "[]"}),
        safetensors_save({"a": torch.zeros(2)}, metadata={KEY: "{"}),
    ],
    ids=["text", "huge header", "no header", "list header", "broken header"],
)
def test_another_file_is_one_sentence(content: bytes, tmp_path) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(ModelFileError, match="must be a whole file"):
        load(tmp_path / "other")


def test_a_newer_file_says_to_upgrade(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cellmend.model.file.FORMAT", 99)
    write_parts(tmp_path / "newer", {}, {"a": torch.zeros(1)})
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"newer has format 99; this cellmend reads format 3\. Hint: upgrade"):
        load(tmp_path / "newer")


@pytest.mark.parametrize("change", ["fewer figures", "fewer weights"])
def test_a_model_of_other_evidence_says_to_fit_again(path, tmp_path, change: str) -> None:
    header, weights = read_parts(path)
    if change == "fewer figures":
        weights["weigher.middle"] = weights["weigher.middle"][:-1]
    else:
        del weights["weigher.log_prior"]
    write_parts(tmp_path / "older", header, weights)
    with pytest.raises(ModelFileError, match=r"older must weigh the evidence .* another version wrote it\. Hint: fit"):
        load(tmp_path / "older")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["settings"].update(hidden_dim=10**6),
        lambda header: header["settings"].update(colour="red"),
        lambda header: header.pop("seed"),
        lambda header: header["columns"].pop(),
        lambda header: header["columns"][0].update(knots=[]),
    ],
)
def test_parts_that_do_not_fit_together_are_one_sentence(path, tmp_path, change) -> None:
    header, weights = read_parts(path)
    change(header)
    write_parts(tmp_path / "odd", header, weights)
    with pytest.raises(ModelFileError, match="must fit together"):
        load(tmp_path / "odd")


CLAIMS = {"networks": 10**8, "components": 10**8, "hidden_dim": 10**8, "latent_dim": 10**7, "embedding_dim": 10**8}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_network_that_is_only_claimed_is_not_built(path, tmp_path, name: str) -> None:
    header, weights = read_parts(path)
    header["settings"][name] = CLAIMS[name]
    write_parts(tmp_path / "m", header, weights)
    with pytest.raises(ModelFileError, match=f"fit together; those of m do not \\({name} is 1"):
        load(tmp_path / "m")


def test_levels_that_are_only_claimed_are_not_built(path, tmp_path) -> None:
    header, weights = read_parts(path)
    column = next(each for each in header["columns"] if each["kind"] == "category")
    column["outputs"] = [10**8] * len(column["levels"])
    write_parts(tmp_path / "m", header, weights)
    with pytest.raises(ModelFileError, match="more columns or levels than weights"):
        load(tmp_path / "m")


RATES = [5, None, [], {}, "x", {"rows": "x"}, {"rows": -1}, {"cells": 2.0}, {"rare": float("nan")}, {"columns": [0.1]}]


@pytest.mark.parametrize("rates", RATES)
def test_edited_rates_are_one_sentence(path, tmp_path, rates) -> None:
    header, weights = read_parts(path)
    header["rates"] = header["rates"] | rates if isinstance(rates, dict) and rates else rates
    write_parts(tmp_path / "m", header, weights)
    with pytest.raises(ModelFileError, match="must fit together"):
        load(tmp_path / "m")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(fitted: CellMender, path, tmp_path, monkeypatch) -> None:
    target = tmp_path / "m.cellmend"
    target.write_bytes(b"old")

    def full_disk(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        fitted.save(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=30)
@given(
    header=st.dictionaries(names.filter(lambda n: n not in ("format", "sha256")), json_values, max_size=3),
    shapes=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3),
)
def test_any_header_and_weights_come_back_as_they_were(header, shapes, tmp_path_factory) -> None:
    weights = {f"t{n}": torch.randn(shape) for n, shape in enumerate(shapes)}
    file = tmp_path_factory.mktemp("any") / "m"
    write_parts(file, header, weights)
    header_again, weights_again = read_parts(file)
    assert header_again == header
    assert weights_again.keys() == weights.keys()
    assert all(torch.equal(weights[name], weights_again[name]) for name in weights)
