"""The state of a training on disk: weights, moments and how many steps they stand for."""

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from sparse_adapt.errors import InputError
from sparse_adapt.training.parameters import Parameters

STATE_FILE = "state.safetensors"
BESIDE = "beside"  # before the names of what a stage keeps, in its state


def save_state(path: Path, parameters: Parameters, optimiser: torch.optim.Optimizer, done: int) -> None:
    """Write weights and moments after `done` steps: whole, or not at all."""
    tensors: dict[str, Tensor] = {}
    for index, parameter in enumerate(parameters.trained()):
        tensors[f"{index}.value"] = parameter.detach()
        for name, moment in optimiser.state.get(parameter, {}).items():
            tensors[f"{index}.{name}"] = moment
    for name, kept in parameters.beside.named_buffers():
        tensors[f"{BESIDE}.{name}"] = kept
    partial = _unfinished(path)
    save_file(
        {name: tensor.contiguous().cpu().clone() for name, tensor in tensors.items()},
        partial,
        {"done": str(done)},
    )
    partial.replace(path)


def _unfinished(path: Path) -> Path:
    return path.with_suffix(".partial")


@torch.no_grad()
def load_state(path: Path, parameters: Parameters, optimiser: torch.optim.Optimizer) -> int:
    """Put weights and moments back; returns how many steps they stand for, 0 where there is no state."""
    if not path.is_file():
        return 0
    trained, kept = parameters.trained(), dict(parameters.beside.named_buffers())
    with safe_open(path, framework="pt") as state:
        for name in state.keys():  # noqa: SIM118 - safe_open has no __iter__
            index, field = name.split(".", 1)
            tensor = state.get_tensor(name)
            parameter = kept[field] if index == BESIDE else trained[int(index)]
            if field == "value" or index == BESIDE:
                if tensor.shape != parameter.shape:
                    raise InputError(path, "belongs to another model; pass --overwrite to start again")
                parameter.copy_(tensor)
            else:
                optimiser.state[parameter][field] = tensor.to(parameter.device)
        done = int(state.metadata()["done"])
    if parameters.shared is not None:
        parameters.shared.taken_up()
    parameters.put_back()
    return done


def forget(folder: Path) -> None:
    """Remove the state of a training whose model is saved."""
    for path in (folder / STATE_FILE, _unfinished(folder / STATE_FILE)):
        path.unlink(missing_ok=True)
