"""One file per model: a JSON header and the weights, as a safetensors file; loading it runs no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor

from cellmend.errors import ModelFileError
from cellmend.files.formats import whole_file

FORMAT = 3
LARGEST_HEADER = 100_000_000  # bytes, as safetensors itself has it
KEY = "cellmend"  # the one metadata key: with several, safetensors' bytes are not reproducible


def save_model(path: str | Path, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
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


def load_model(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and weights of a model file, checked."""
    path = Path(path)
    try:
        text = _read_metadata(path)[KEY]
        header = json.loads(text)
        if json.dumps(header) != text:  # the last digit of a number may be another one, and the number the same
            raise ValueError("a header that save would not write")
        weights = read_tensors(path.read_bytes())
        written, expected = header.pop("format"), header.pop("sha256", None)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(
            f"A model file must be a whole file written by CellMender.save; {path.name} is not "
            f"({type(error).__name__}: {error}). Hint: save the model again."
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
    return header, weights


def _read_metadata(path: Path) -> dict[str, str]:
    """safetensors: 8 bytes length, that many bytes of JSON, then the tensors and nothing else."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= LARGEST_HEADER:
            raise ValueError(f"a header of {length} bytes")
        header = json.loads(file.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    if 8 + length + max(ends, default=0) != path.stat().st_size:  # before reading what may be huge
        raise ValueError("the size is not what the header says")
    metadata: dict[str, str] = header["__metadata__"]
    return metadata


def _digest(header: dict[str, Any], weights: dict[str, Tensor]) -> str:
    """SHA-256 over header and weights: safetensors itself does not notice a flipped bit."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(weights):
        digest.update(f"{name} {weights[name].dtype} {tuple(weights[name].shape)}".encode())
        digest.update(weights[name].flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
