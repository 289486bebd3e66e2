"""Triplets and labelled: a text nearer to what says the same than to what only looks the same.

Two terms: `contradict`, over the twins and the contradictions of the batch; `sparsity` (sparse encoders only), the
expected scoring work of a text. Where nobody wrote what says the same, the text is its own twin: the same words read
a second time with dropout on, as Gao et al. 2021 (arXiv:2104.08821) have it. Two stages learn so, first `triplets`
from what was generated, then `labelled` from inference pairs, after Chen, Handa and Shirahama, JCSE.

Each process of several drops out by a seed of its own, and each part of the texts under a bound on memory in its turn,
so that here, other than anywhere else, the result depends on how many there are.
Dimensions: B anchors.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import LABELLED, Input, Inputs
from sparse_adapt.stages.inputs import TRIPLETS as GENERATED
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Training

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from sparse_adapt.collection.examples import Triplet
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task

COSINE = 0.05  # temperature


class TripletsWeights(Settings):
    """Weights of the loss terms."""

    contradict: float = setting(
        1.0,
        "A text nearer to its twin than to contradictions and to other texts.",
        source="Chen, Handa and Shirahama, JCSE",
        ge=0,
    )
    sparsity: float = setting(
        0.005,
        "Expected work of scoring a text. Dense encoders have no such term.",
        source="Paria et al. 2020, arXiv:2004.05665",
        ge=0,
    )


class Triplets(Training):
    """Bring a text nearer to a twin of itself than to a text that contradicts it."""

    weights: TripletsWeights = setting(TripletsWeights(), "Weights of the loss terms.")
    train: Literal["new", "all"] = setting(
        "all", "What learns beside the rows of new tokens: all weights, or nothing (`new`)."
    )
    new_learning_rate: float = setting(1e-3, gt=0)
    batch_size: int = setting(
        32, "Texts of a step, each read twice, with one contradiction each.", unit="texts", ge=1
    )
    temperature: float | None = setting(
        None, "What similarities are divided by; by default 3 for a product, .05 for a cosine.", gt=0
    )
    longest: int = setting(128, "Tokens of a text that are read.", unit="tokens", ge=8)
    own: float = setting(1.0, "What a text's own contradiction counts beside those of the other texts.", ge=0)


# JCSE: a text's own contradiction has no weight in the first stage, and the whole of it in the second.
RATES = {"jcse": 5e-5, "jcse-large": 1e-5}  # of a base model, and of a large one
OWN = {"triplets": 0.0, "labelled": 1.0}


@dataclass(frozen=True, slots=True)
class TripletBatch:
    """Anchors, then a twin and a contradiction of each; which of these are no negatives of which anchor."""

    ids: list[list[int]]  # 3 B texts
    left_out: "Tensor"  # (B, 2 B)
    seed: int  # of what is dropped out


class Contradictions:
    """One stage over triplets, for `training.train`."""

    def __init__(
        self, name: str, encoder: "Encoder", triplets: "Sequence[Triplet]", settings: Triplets
    ) -> None:
        """Raises ConfigError where no contradiction is left that the encoder can tell from its anchor."""
        from sparse_adapt.model.sparse import SparseEncoder
        from sparse_adapt.model.tokens import cut
        from sparse_adapt.plugins.research.stages.pair_losses import DOT_PRODUCT, key_of

        self.name, self.settings = name, settings
        sparse = isinstance(encoder, SparseEncoder)
        weights: dict[str, float] = settings.weights.model_dump()
        self.weights: Mapping[str, float] = {
            key: weight for key, weight in weights.items() if sparse or key != "sparsity"
        }
        self.temperature = settings.temperature or (DOT_PRODUCT if sparse else COSINE)
        numbers: dict[str, int] = {}
        written: list[str] = []

        def row_of(text: str) -> int:
            if numbers.setdefault(key_of(text), len(written)) == len(written):
                written.append(text)
            return numbers[key_of(text)]

        rows_of: dict[int, dict[tuple[int, int], None]] = {}
        for triplet in triplets:
            anchor, twin = row_of(triplet.anchor), row_of(triplet.entailment or triplet.anchor)
            for text in triplet.contradictions:
                rows_of.setdefault(anchor, {})[(twin, row_of(text))] = None
        self.texts = cut(encoder.tokenize(written), settings.longest)
        seen = {anchor: self._seen(anchor, pairs) for anchor, pairs in rows_of.items()}
        self.others = {anchor: pairs for anchor, pairs in seen.items() if pairs}
        self.anchors = list(self.others)
        if not self.anchors:
            problem = "no contradiction differs from its anchor in what the model reads of it"
            raise ConfigError(f"{name}: {problem}; raise longest or choose another model")
        self.steps = settings.steps_for(sum(map(len, self.others.values())))

    def _seen(self, anchor: int, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Twins and contradictions of an anchor without those that differ only where the text is cut."""
        return [
            (twin, row)
            for twin, row in pairs
            if self.texts[row] not in (self.texts[anchor], self.texts[twin])
        ]

    def batch(self, random: "Generator") -> TripletBatch:
        """Anchors drawn without repetition, for each a twin and one of its contradictions."""
        import torch

        count = min(self.settings.batch_size, len(self.anchors))
        chosen = sorted(int(row) for row in random.choice(len(self.anchors), count, replace=False))
        anchors = [self.anchors[each] for each in chosen]
        drawn = [self.others[row][int(random.integers(len(self.others[row])))] for row in anchors]
        twins, opposites = [twin for twin, _ in drawn], [opposite for _, opposite in drawn]
        columns = [*twins, *opposites]
        left_out = torch.tensor(
            [
                [column in (anchor, twin) for column in columns]
                for anchor, twin in zip(anchors, twins, strict=True)
            ]
        )
        left_out[range(count), range(count)] = False
        ids = [self.texts[row] for row in (*anchors, *columns)]
        return TripletBatch(ids, left_out, int(random.integers(2**31)))

    def terms(self, encoder: "Encoder", batch: TripletBatch) -> "dict[str, Tensor]":
        """`contradict`, and `sparsity` where the encoder is sparse, unweighted: a scalar each, ()."""
        from sparse_adapt.training import losses
        from sparse_adapt.training.sharing import shared_out

        with dropping_out(encoder, batch.seed):
            vectors = shared_out(lambda rows: _vectors(encoder, batch, rows), range(len(batch.ids)))
        count = len(batch.left_out)
        anchors, others = vectors[:count], vectors[count:]
        scores = losses.scores(anchors, others)
        terms = {
            "contradict": losses.contradict(
                scores[:, :count],
                scores[:, count:],
                batch.left_out.to(encoder.device),
                self.temperature,
                self.settings.own,
            )
        }
        if "sparsity" in self.weights:
            terms["sparsity"] = losses.flops(vectors)
        return terms


@contextmanager
def dropping_out(encoder: "Encoder", seed: int) -> Iterator[None]:
    """Read with dropout, the same for the same seed; the random numbers of whoever calls stay as they were."""
    import torch
    from torch import distributed

    process = distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
    devices = [encoder.device] if encoder.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed + process)
        encoder.train()
        try:
            yield
        finally:
            encoder.eval()


def _vectors(encoder: "Encoder", batch: TripletBatch, rows: Sequence[int]) -> "Tensor":
    """The vectors of some texts of a batch, a row each in their order: (rows, width)."""
    from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, read_by_length

    def read(
        ids: "Tensor", mask: "Tensor", _: list[int]
    ) -> "Tensor":  # (texts, positions) twice -> (texts, width)
        return encoder.vectors(encoder.hidden(ids, mask), mask, ids)

    pad_id = encoder.tokenizer.pad_token_id or 0
    return read_by_length(
        [batch.ids[row] for row in rows], PADDED_TOKENS_A_PASS, pad_id, encoder.device, read
    )


def learning_from(name: str, read: "Input[list[Triplet]]") -> Stage[Triplets]:
    """The stage of that name over the triplets of one input."""

    def build(encoder: "EitherEncoder", inputs: Inputs, settings: Triplets) -> "Task[Encoder]":

        return Contradictions(name, encoder, inputs[read], settings)

    presets = {
        preset: {"own": OWN[name], "batch_size": 512, "learning_rate": rate, "new_learning_rate": rate}
        for preset, rate in RATES.items()
    }
    return Stage(name, Triplets, (read,), build, refuses=("table",), presets=presets)


TRIPLETS = learning_from("triplets", GENERATED)
LABELLED_PAIRS = learning_from("labelled", LABELLED)
