"""The state of a training on disk: weights, moments and how many steps they stand for.

A state is on the disk before it takes the place of the one before, which stays beside it: should one be damaged, the
training goes on from the other.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sparse_adapt.errors import InputError
from sparse_adapt.files.writing import publish, sync
from sparse_adapt.training.parameters import Parameters

STATE_FILE = "state.safetensors"
BEFORE_FILE = "state.before.safetensors"
BESIDE = "beside"  # before the names of what a stage keeps, in its state
DONE = "done"


class State(NamedTuple):
    """Tensors by name, and how many steps they stand for."""

    tensors: dict[str, Tensor]
    done: int


def save_state(folder: Path, parameters: Parameters, optimiser: torch.optim.Optimizer, done: int) -> None:
    """Put weights and moments after `done` steps into a folder: whole, or not at all."""
    tensors: dict[str, Tensor] = {}
    for index, parameter in enumerate(parameters.trained()):
        tensors[f"{index}.value"] = parameter.detach()
        for name, moment in optimiser.state.get(parameter, {}).items():
            tensors[f"{index}.{name}"] = moment
    for name, buffer in parameters.beside.named_buffers():
        tensors[f"{BESIDE}.{name}"] = buffer
    path = folder / STATE_FILE
    written = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    written.touch(exist_ok=False)  # so that no link is followed
    try:
        whole = {name: tensor.contiguous().cpu().clone() for name, tensor in tensors.items()}
        save_file(whole, written, {DONE: str(done)})
        sync(written)
        if path.is_file():
            path.replace(folder / BEFORE_FILE)
        publish(written, path)
    finally:
        written.unlink(missing_ok=True)


def load_state(
    folder: Path,
    parameters: Parameters,
    optimiser: torch.optim.Optimizer,
    history: Sequence[object],
) -> int:
    """Put weights and moments back; returns how many steps they stand for, 0 where there is no state.

    history: a row for each step that is known of. Raises InputError for the state of another model.
    """
    for name in (STATE_FILE, BEFORE_FILE):
        state = _read(folder / name)
        if state is not None and state.done <= len(history):
            _put_back(state, folder / name, parameters, optimiser)
            return state.done
    return 0


def forget(folder: Path) -> None:
    """Remove the state of a training whose model is saved."""
    for name in (STATE_FILE, BEFORE_FILE):
        (folder / name).unlink(missing_ok=True)


def _read(path: Path) -> State | None:
    """The state at a path; None where there is none, or it is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - safe_open has no __iter__
            return State(tensors, int(file.metadata()[DONE]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None


@torch.no_grad()
def _put_back(state: State, path: Path, parameters: Parameters, optimiser: torch.optim.Optimizer) -> None:
    trained, buffers = parameters.trained(), dict(parameters.beside.named_buffers())
    places: dict[str, Tensor] = {f"{index}.value": each for index, each in enumerate(trained)}
    places |= {f"{BESIDE}.{name}": buffer for name, buffer in buffers.items()}
    for name, place in places.items():
        if name not in state.tensors or state.tensors[name].shape != place.shape:
            raise InputError(path, "belongs to another model; pass --overwrite to start again")
        place.copy_(state.tensors[name])
    for name in state.tensors.keys() - places.keys():
        index, _, field = name.partition(".")
        if not index.isdecimal() or int(index) >= len(trained):
            raise InputError(path, "belongs to another model; pass --overwrite to start again")
        parameter = trained[int(index)]
        optimiser.state[parameter][field] = state.tensors[name].to(parameter.device)
    if parameters.shared is not None:
        parameters.shared.taken_up()
    parameters.put_back()
