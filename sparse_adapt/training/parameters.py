"""What an optimiser moves, how fast: rows of new tokens, what was there before, what words share."""

import torch
from torch import nn
from torch.optim import Optimizer

from sparse_adapt.errors import ConfigError
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.training.settings import Trained, Training
from sparse_adapt.training.shared_steps import SharedFeatures, SharedSteps

ATTENTION = frozenset(("attention", "attn", "self_attn"))  # what families call the module


class Parameters:
    """What is trained, how fast: new rows as parameters of their own beside the shared matrices they live in.

    An optimiser can't give some rows of a matrix another learning rate, and weight decay would move rows that
    have no gradient. So new rows are copied out before training, take their gradient from the matrix, and are
    copied back after every step; the old rows of a matrix that isn't trained stay the same bit for bit.
    Where input embeddings are trained, words of which something is known share their steps.
    """

    def __init__(
        self,
        encoder: Encoder,
        settings: Training,
        beside: nn.Module | None = None,
        shared_features: SharedFeatures | None = None,
    ) -> None:
        self.first = encoder.old_size
        self.count = len(encoder.new_tokens)
        self.settings, self.rate = settings, settings.rate_at(encoder.width)
        self.whole = [
            p for p in (encoder.input_rows, encoder.output_rows, encoder.output_bias) if p is not None
        ]
        self.whole = list({id(parameter): parameter for parameter in self.whole}.values())
        rows = slice(self.first, self.first + self.count)
        self.new = [nn.Parameter(parameter.detach()[rows].clone()) for parameter in self.whole]
        self.beside = beside or nn.Module()
        self.old = chosen(encoder, settings.train)
        for parameter in encoder.parameters():
            parameter.requires_grad_(False)
        for parameter in (*self.old, *self.whole):
            parameter.requires_grad_(True)
        self.still = [whole for whole in self.whole if all(whole is not each for each in self.old)]
        learns = any(encoder.input_rows is each for each in self.old)
        self.shared = (
            SharedSteps(encoder.input_rows, shared_features)
            if shared_features is not None and learns
            else None
        )
        if settings.train == "new" and not self.count:
            raise ConfigError('this model has no new tokens to train; extend it first, or set train = "all"')

    def groups(self) -> list[dict[str, object]]:
        """Parameter groups for the optimiser."""
        groups: list[dict[str, object]] = []
        if self.count:
            groups.append(
                {"params": self.new, "full_rate": self.settings.new_learning_rate, "weight_decay": 0.0}
            )
        if self.old:
            groups.append({"params": self.old, "full_rate": self.rate})
        if fresh := list(self.beside.parameters()):
            rate = getattr(self.beside, "learning_rate", self.settings.new_learning_rate)
            groups.append({"params": fresh, "full_rate": rate})
        if self.shared is not None:
            shared = {"params": [self.shared.map], "full_rate": self.shared.pace * self.rate}
            groups.append({**shared, "weight_decay": 0.0})
        return [{**group, "lr": 0.0} for group in groups]

    def set_rate(self, optimiser: Optimizer, rate: float) -> None:
        """Give every group its share of its full learning rate."""
        for group in optimiser.param_groups:
            group["lr"] = group["full_rate"] * rate

    def collect(self) -> None:
        """Move the gradient of the new rows from the matrices to the rows' own parameters; give the map its own."""
        rows = slice(self.first, self.first + self.count)
        for own, whole in zip(self.new, self.whole, strict=True):
            if whole.grad is None:
                continue
            own.grad = whole.grad[rows].clone()
            whole.grad[rows] = 0.0
        if self.shared is not None:
            self.shared.collect()
        for whole in self.still:
            whole.grad = None

    @torch.no_grad()
    def take_up(self) -> None:
        """Begin with the new rows that the matrices hold by now."""
        rows = slice(self.first, self.first + self.count)
        for own, whole in zip(self.new, self.whole, strict=True):
            own.copy_(whole[rows])

    @torch.no_grad()
    def put_back(self) -> None:
        """Write the new rows into the matrices, and what words share."""
        rows = slice(self.first, self.first + self.count)
        for own, whole in zip(self.new, self.whole, strict=True):
            whole[rows] = own
        if self.shared is not None:
            self.shared.put_back()

    def trained(self) -> list[nn.Parameter]:
        """Every parameter that an optimiser step moves, in the order of `groups`."""
        shared = () if self.shared is None else (self.shared.map,)
        return [*(self.new if self.count else ()), *self.old, *self.beside.parameters(), *shared]


def chosen(encoder: Encoder, train: Trained) -> list[nn.Parameter]:
    """What learns of the model that was there before: nothing but new rows, everything, biases or attention alone.

    Biases alone: Ben Zaken et al. 2022, arXiv:2106.10199. Raises ConfigError where the model has none of these.
    """
    named = list(encoder.named_parameters())
    if train in ("new", "all"):
        return [parameter for _, parameter in named if train == "all"]
    if train == "biases":
        biases = [parameter for name, parameter in named if name.rpartition(".")[2] == "bias"]
    else:
        biases = [parameter for name, parameter in named if ATTENTION & set(name.split("."))]
    if not biases:
        raise ConfigError(f'this model has nothing that train = "{train}" could move; set train = "all"')
    return biases
