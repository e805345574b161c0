"""A Model as one file: a JSON header and the weights, as safetensors; loading it runs no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor

import cellmend
from cellmend.decisions.taught import Taught
from cellmend.errors import ModelFileError
from cellmend.files.places import whole_file
from cellmend.model.columns import ENCODED, EncodedColumn
from cellmend.model.encoding import Cells, TableEncoder
from cellmend.model.model import Calibration, Model, Replay, Weighing, as_one, draw_networks
from cellmend.model.profile import Profile
from cellmend.model.suspicion import ErrorRates
from cellmend.posterior.firstlook import FirstLook
from cellmend.posterior.tails import GRID, Tails
from cellmend.posterior.weigher import Context, learned, weigher_of
from cellmend.settings import Settings
from cellmend.table.packing import pack, unpack
from cellmend.table.reader import TableReader
from cellmend.table.relations.rules import Rules
from cellmend.table.schema import Schema

FORMAT = 3
KEPT_VALUES, KEPT_OBSERVED = "kept.values", "kept.observed"  # of the rows that a model keeps
WEIGHER = "weigher."  # of the weights that a model was judged by: it keeps answering the same
KEY = "cellmend"  # the one metadata key: with several, safetensors' bytes are not reproducible


def save_model(path: str | Path, model: Model, settings: Settings, *, named: bool) -> None:
    """Write a model and the settings that it was fitted by; `named`: its columns had names of text."""
    header = {
        "versions": {"cellmend": cellmend.__version__, "torch": torch.__version__},
        "settings": settings_to_json(settings),
        **model.reader.to_json(),
        "columns": pack(model.encoder.columns),
        "named": named,
        "seed": model.seed,
        "offset": model.calibration.offset,
        "fitted_method": model.calibration.method,
        "rates": pack(model.calibration.rates),
        "history": model.history,
        "summary": model.profile.to_json(),
        "learned_rows": model.replay.stands_for,
    }
    if model.taught is not None:
        header["taught"] = model.taught.to_json()
    weigher = {}
    if model.weighing is not None:
        header["first_look"] = pack(model.weighing.first_look)
        header["tails"] = model.weighing.tails.at_least.tolist()
        header["context"] = model.weighing.context.to_json()
        weigher = {WEIGHER + name: value.half() for name, value in model.weighing.weigher.state_dict().items()}
    kept = {KEPT_VALUES: model.replay.cells.values, KEPT_OBSERVED: model.replay.cells.observed}
    write_parts(path, header, model.network.state_dict() | kept | weigher)


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """The arguments of CellMender as JSON holds them."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in vars(settings).items()}
    if not isinstance(plain["random_state"], int):
        plain["random_state"] = None
    if settings.schema is not None:
        plain["schema"] = Schema.of(settings.schema).to_dict()
    if settings.rules is not None:
        plain["rules"] = Rules.of(settings.rules).to_json()
    return plain | {"device": str(settings.device), "protect": list(settings.protect)}


@contextmanager
def parts_that_fit(path: str | Path) -> Iterator[None]:
    """What goes wrong meanwhile is that the parts of the file do not fit together."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The parts of a model file must fit together; those of {Path(path).name} do not ({error}). "
            "Hint: save the model again."
        ) from None


def model_of(header: dict[str, Any], weights: dict[str, Tensor], settings: Settings) -> Model:
    """The model that a header and weights describe, on the processor."""
    reader = TableReader.from_json(header)
    columns = [unpack(ENCODED[entry["kind"]], entry) for entry in header["columns"]]
    encoder = TableEncoder(columns, [column.name for column in reader.schema])
    kept = Cells(weights.pop(KEPT_VALUES), weights.pop(KEPT_OBSERVED))
    of_weigher = {name.removeprefix(WEIGHER): weights.pop(name) for name in list(weights) if name.startswith(WEIGHER)}
    _check_sizes(encoder.columns, settings, weights)
    network = as_one(draw_networks(encoder.columns, settings, header["seed"]))
    network.load_state_dict(weights)
    return Model(
        reader=reader,
        encoder=encoder,
        network=network,
        calibration=Calibration(_rates(header, len(columns)), header["offset"], header["fitted_method"]),
        profile=Profile.from_json(header["summary"]),
        replay=Replay(kept, header["learned_rows"]),
        seed=header["seed"],
        history=header["history"],
        taught=Taught.from_json(header["taught"]) if "taught" in header else None,
        weighing=_weighing(header, of_weigher),
    )


def _check_sizes(columns: Sequence[EncodedColumn], settings: Settings, weights: Mapping[str, Tensor]) -> None:
    """Refuse a network of another size than the weights that are there, before any of it is built."""
    bias, shared = weights["decoder_output.bias"], ("places", "log_rates")
    shapes = [tensor.shape for name, tensor in weights.items() if name.rpartition(".")[2] in shared]
    claimed: dict[str, tuple[int, int]] = {}
    if columns:
        claimed["networks"] = settings.networks, len(bias) if bias.ndim > 1 else 1
        claimed["latent_dim"] = settings.latent_dim, weights["decoder_hidden.weight"].shape[-2]
        claimed["hidden_dim"] = settings.hidden_dim, weights["decoder_output.weight"].shape[-2]
        claimed["embedding_dim"] = settings.embedding_dim, weights["embeddings.vectors"].shape[-1]
    numbers = sum(column.kind in ("real", "count") for column in columns)
    if settings.components and numbers:
        claimed["components"] = settings.components, min((shape[-1] for shape in shapes), default=0)
        claimed["columns"] = numbers, sum(shape[-2] for shape in shapes)
    wrong = next((name for name, (said, there) in claimed.items() if said != there), None)
    if wrong is not None:
        raise ValueError(f"{wrong} is {claimed[wrong][0]:,}, and its weights are for {claimed[wrong][1]:,}")
    outputs = sum(max(getattr(column, "outputs", ()), default=0) for column in columns)
    if max(len(columns), outputs) > bias.shape[-1]:
        raise ValueError("there are more columns or levels than weights for them")


def _rates(header: dict[str, Any], columns: int) -> ErrorRates:
    """The shares of wrong cells; of every column one, or of none."""
    rates = unpack(ErrorRates, header["rates"])
    if len(rates.columns) not in (0, columns) or not all(
        0 <= share <= 1 for share in (rates.rows, rates.cells, rates.rare, *rates.columns)
    ):
        raise ValueError("rates must be shares from 0 to 1, one for each column")
    return rates


def _weighing(header: dict[str, Any], tensors: dict[str, Tensor]) -> Weighing | None:
    """What it takes to weigh evidence; models of before, and those of the methods of the paper, have none."""
    if "first_look" not in header:
        return None
    look, context = unpack(FirstLook, header["first_look"]), Context.from_json(header["context"])
    return Weighing(weigher_of(tensors), look, Tails(np.array(header["tails"]).reshape(-1, len(GRID))), context)


def write_parts(path: str | Path, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write header and weights; the file is whole or not there."""
    path = Path(path)
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise ModelFileError(f"A model must be saved as a file in a folder that is there; {path} cannot be.")
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, **header}
    header["sha256"] = _digest(header, weights)
    content = write_tensors(weights, metadata={KEY: json.dumps(header)})
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def _what_is_wrong(error: Exception) -> str:
    is_told = isinstance(error, ValueError | safetensors.SafetensorError) and not isinstance(error, UnicodeError)
    said = str(error).partition("\n")[0].removeprefix("Error while deserializing header: ")
    return said if is_told else "its header is none of a model"


def read_parts(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and weights of a model file, checked."""
    path = Path(path)
    try:
        with path.open("rb"), safetensors.safe_open(path, "pt") as file:  # open says what is the matter with a path
            text = file.metadata()[KEY]
        header = json.loads(text)
        if json.dumps(header) != text:  # the last digit of a number may be another one, and the number the same
            raise ValueError("a header that save would not write")
        weights = read_tensors(path.read_bytes())
        written, expected = header.pop("format"), header.pop("sha256", None)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(
            f"A model file must be a whole file written by CellMender.save; {path.name} is not "
            f"({_what_is_wrong(error)}). Hint: save the model again."
        ) from None
    if written != FORMAT:
        raise ModelFileError(
            f"{path.name} has format {written}; this cellmend reads format {FORMAT}. "
            "Hint: upgrade cellmend, or fit and save the model again."
        )
    if _digest({"format": written, **header}, weights) != expected:
        raise ModelFileError(
            f"The contents of {path.name} must match its checksum; they do not, so the file is damaged. "
            "Hint: copy it again or save the model again."
        )
    shapes = {name.removeprefix(WEIGHER): each.shape for name, each in weights.items() if name.startswith(WEIGHER)}
    if shapes and shapes != {name: each.shape for name, each in learned().state_dict().items()}:
        raise ModelFileError(  # its answers would mean nothing
            f"{path.name} must weigh the evidence that this cellmend works out; another version wrote it. "
            "Hint: fit and save the model again."
        )
    if "portrait" in (header.get("taught") or {}):
        raise ModelFileError(
            f"{path.name} learned its decisions from evidence that this cellmend no longer works out. "
            "Hint: fit the model again and give it the decisions again."
        )
    return header, weights


def _digest(header: dict[str, Any], weights: dict[str, Tensor]) -> str:
    """SHA-256 over header and weights: safetensors itself does not notice a flipped bit."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(weights):
        digest.update(f"{name} {weights[name].dtype} {tuple(weights[name].shape)}".encode())
        digest.update(weights[name].flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
