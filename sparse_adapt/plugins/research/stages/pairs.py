"""Joint and contrast: a query's own document before the others of its batch, with words masked or without.

Three terms: `infonce`, over the documents of the batch, or in the form NT-Xent both ways over all of its texts, for
dense encoders behind a projection that is dropped afterwards; `mlm` (joint only), the masked words of the same texts in
the same pass, so that what a word is learnt from is also what the text is found by; `sparsity` (sparse encoders
only), the expected scoring work of queries and of documents. After Pavlova and Makhlouf, MOSAIC.

Dimensions: Q queries, B documents, M masked words, V vocabulary, H hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS, PAIRS, Inputs
from sparse_adapt.stages.record import before_extension
from sparse_adapt.stages.stage import Preset, Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor, nn

    from sparse_adapt.collection.examples import Pair
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sentence import SentenceEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.token_scales import LearntScales
    from sparse_adapt.training.loop import Task


MOSAIC = "Pavlova and Makhlouf, MOSAIC"


class ContrastWeights(Settings):
    """Weights of the loss terms."""

    infonce: float = setting(
        1.0,
        "A query's own document before the others of its batch, in either form.",
        source="van den Oord et al. 2018, arXiv:1807.03748",
        ge=0,
    )
    sparsity: float = setting(
        0.015,
        "Expected work of scoring queries and documents. Dense encoders have no such term.",
        source="Paria et al. 2020, arXiv:2004.05665",
        ge=0,
    )
    anchor: float = setting(
        0.0, "Distance of background texts to the vectors that they had before the extension.", ge=0
    )


class JointWeights(ContrastWeights):
    """Weights of the loss terms."""

    mlm: float = setting(0.3, "Masked words of the same texts, alpha in the paper.", source=MOSAIC, ge=0)


class Contrast(Training):
    """Rank a query's document before the other documents of its batch."""

    weights: ContrastWeights = setting(ContrastWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    narrow_rate: ClassVar[float] = 1e-4
    new_learning_rate: float = setting(1e-3, gt=0)
    batch_size: int = setting(
        32, "Pairs of a step, each with the documents of the others as negatives.", unit="pairs", ge=1
    )
    form: Literal["infonce", "nt-xent"] = setting(
        "infonce",
        "The document by the query (`infonce`), or both ways among all texts of the batch (`nt-xent`).",
        source="nt-xent: Chen et al. 2020, arXiv:2002.05709",
    )
    projection: bool | None = setting(
        None,
        "Whether a head stands between vectors and loss while a dense encoder learns; by default with nt-xent.",
        source="Chen et al. 2020, arXiv:2002.05709",
    )
    temperature: float | None = setting(
        None,
        "What similarities are divided by; by default 3 for a product, .05 for a cosine, .1 in nt-xent.",
        gt=0,
    )
    token_scales: Literal["none", "idf", "learnt"] = setting(
        "none",
        "What a match on each token counts: as it is, by its idf, or by a scale that is learnt (sparse encoders).",
    )
    token_scale_rate: float = setting(3e-3, "Highest learning rate of the token scales' logarithms.", gt=0)
    longest: int = setting(128, "Tokens of a text that are read.", unit="tokens", ge=8)
    hard_negatives: int = setting(
        0,
        "Hard negatives: documents beside each pair that the incoming model ranks high for the query.",
        unit="documents",
        source="Moreira et al. 2024, arXiv:2407.15831",
        ge=0,
    )
    depth: int = setting(30, "Lowest rank of a hard negative.", unit="rank", ge=1)
    below: float = setting(
        0.95,
        "Highest score of a hard negative; a document that scores higher may be relevant.",
        unit="share of the own document's score",
        gt=0,
        le=1,
    )


class Joint(Contrast):
    """Rank a query's document before the others while words are masked, and guess the masked words at once."""

    weights: JointWeights = setting(JointWeights())
    masked: Literal["domain", "all"] = setting(
        "domain",
        "What may be masked, and a masked word is guessed among: the new tokens, or all.",
        source=MOSAIC,
    )
    mask_rate: float = setting(
        0.15,
        "How often a token that may be masked is.",
        unit="share of the tokens",
        source=MOSAIC,
        gt=0,
        lt=1,
    )


COSINE = {"infonce": 0.05, "nt-xent": 0.1}  # temperatures


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Queries and then documents, masked or not; which document is whose, and which are no negatives."""

    ids: list[list[int]]
    labels: list[list[int]]  # the word that was masked, or SHOWN
    own: "Tensor"  # (Q) among the documents
    relevant: "Tensor"  # (Q, B)
    others: list[int]  # background texts, for the anchor


class Pairing:
    """One stage over pairs, for `training.train`."""

    def __init__(
        self,
        name: str,
        encoder: "EitherEncoder",
        pairs: "Sequence[Pair]",
        documents: Mapping[str, str],
        settings: Contrast,
        before: "EitherEncoder | None" = None,
    ) -> None:
        """`documents`: text of every document, by id. Raises ConfigError where there is nothing to mask.

        `before`: whose vectors of background texts the anchor holds; by default the encoder's own.
        """
        from sparse_adapt.model.sparse import SparseEncoder
        from sparse_adapt.model.tokens import cut
        from sparse_adapt.plugins.research.stages.dense import background_for
        from sparse_adapt.plugins.research.stages.masked import mask_token
        from sparse_adapt.plugins.research.stages.pair_losses import DOT_PRODUCT, first_places, known_relevant

        self.name, self.settings = name, settings
        self.steps = settings.steps_for(len(pairs))
        sparse = isinstance(encoder, SparseEncoder)
        weights: dict[str, float] = settings.weights.model_dump()
        self.weights: Mapping[str, float] = {
            key: weight
            for key, weight in weights.items()
            if (sparse or key != "sparsity") and (weight > 0.0 or key != "anchor")
        }
        self.background = background_for(encoder, before, settings.seed) if "anchor" in self.weights else None
        self.temperature = settings.temperature or (DOT_PRODUCT if sparse else COSINE[settings.form])
        place = first_places(documents)
        self.queries = cut(encoder.tokenize([pair.query for pair in pairs], "query"), settings.longest)
        self.documents = cut(encoder.tokenize(list(documents.values())), settings.longest)
        self.token_scales: LearntScales | None = None
        if isinstance(encoder, SparseEncoder):
            self.token_scales = self._token_scales(encoder)
        else:
            self._weigh(encoder)
        self.projection = _projection(name, encoder, settings)
        self.beside: nn.Module | None = self.projection if self.token_scales is None else self.token_scales
        self.own = [place[pair.document_id] for pair in pairs]
        self.relevant = known_relevant(pairs, self.own)
        self.hard = self._hard(encoder, sorted(set(place.values())))
        self.vocabulary = _vocabulary(encoder, settings) if isinstance(settings, Joint) else []
        self.maskable = frozenset(self.vocabulary) - set(encoder.tokenizer.all_special_ids)
        self.mask_id = mask_token(encoder, name) if self.vocabulary else 0

    def batch(self, random: "Generator") -> PairBatch:
        """Pairs drawn without repetition, each document once, and mined ones that their queries ask for."""
        import torch

        count = min(self.settings.batch_size, len(self.own))
        chosen = sorted(int(row) for row in random.choice(len(self.own), count, replace=False))
        rows = [self.own[pair] for pair in chosen]
        for pair in chosen:
            hard = self.hard[pair]
            rows += random.choice(hard, min(self.settings.hard_negatives, len(hard)), replace=False).tolist()
        documents = list(dict.fromkeys(rows))
        column = {row: number for number, row in enumerate(documents)}
        relevant = torch.zeros(count, len(documents), dtype=torch.bool)
        for number, pair in enumerate(chosen):
            relevant[number, [column[row] for row in self.relevant[pair] if row in column]] = True
        texts = [self.queries[pair] for pair in chosen] + [self.documents[row] for row in documents]
        masked = [self._mask(ids, random) for ids in texts]
        own = torch.tensor([column[self.own[pair]] for pair in chosen])
        others = [] if self.background is None else self.background.draw(random)
        return PairBatch([ids for ids, _ in masked], [labels for _, labels in masked], own, relevant, others)

    def terms(self, encoder: "Encoder", batch: PairBatch) -> "dict[str, Tensor]":
        """`infonce`, and `mlm` and `sparsity` where stage and encoder have them, unweighted: a scalar each, ()."""
        import torch

        from sparse_adapt.plugins.research.stages.masked import read_masked
        from sparse_adapt.plugins.research.stages.pair_losses import related
        from sparse_adapt.training import losses

        states, words = read_masked(
            encoder,
            batch.ids,
            batch.labels,
            lambda *read: self._projected(encoder.vectors(*read)),
            self.vocabulary,
        )
        count, device = len(batch.own), encoder.device
        counted = states if self.token_scales is None else self.token_scales(states)
        own, relevant = batch.own.to(device), batch.relevant.to(device)
        if self.settings.form == "nt-xent":
            pairs = torch.stack([torch.arange(count, device=device), count + own], dim=1)
            alike = losses.scores(counted, counted)
            infonce = losses.ntxent(alike, pairs, related(relevant), self.temperature)
        else:
            scores = losses.scores(counted[:count], counted[count:])
            infonce = losses.infonce(scores, own, relevant, self.temperature)
        terms = {"infonce": infonce}
        if "sparsity" in self.weights:
            terms["sparsity"] = losses.flops(states[:count]) + losses.flops(states[count:])
        if "mlm" in self.weights:
            terms["mlm"] = words
        if self.background is not None:
            terms["anchor"] = self.background.distance(encoder, batch.others, self.token_scales)
        return terms

    def conclude(self, encoder: "EitherEncoder") -> Mapping[str, object]:
        """Give a taught encoder the token scales that it was taught with."""
        if self.token_scales is not None:
            encoder.token_scales = self.token_scales.values
        return {}

    def _hard(self, encoder: "EitherEncoder", among: list[int]) -> list[list[int]]:
        """Rows of the hard negatives of each pair, among some documents; none where the settings want none."""
        from sparse_adapt.plugins.research.stages.pair_losses import QueryToMine, hard_negatives

        settings = self.settings
        if not settings.hard_negatives:
            return [[] for _ in self.own]
        to_mine = [QueryToMine(*each) for each in zip(self.queries, self.own, self.relevant, strict=True)]
        token_scales = None if self.token_scales is None else self.token_scales.values
        return hard_negatives(
            encoder, to_mine, self.documents, among, settings.depth, settings.below, token_scales
        )

    def _token_scales(self, encoder: "SparseEncoder") -> "LearntScales | None":
        """The encoder's own, or begun by idf where the settings say so; they learn, or are held."""
        from sparse_adapt.objectives.texts import vectors
        from sparse_adapt.objectives.token_scales import LearntScales, first_scales

        settings = self.settings
        if settings.token_scales == "none" and encoder.token_scales is None:
            return None
        background = None if self.background is None else self.background.share
        start = first_scales(encoder, lambda: vectors(encoder, self._counted()), background)
        return LearntScales(start, settings.token_scale_rate if settings.token_scales == "learnt" else 0.0)

    def _weigh(self, encoder: "SentenceEncoder") -> None:
        """Tokens count in the encoder's mean by their idf, where the settings say so, now and while it learns."""
        from sparse_adapt.model.idf import of_mean
        from sparse_adapt.plugins.research.stages.dense import DenseBackground

        if self.settings.token_scales == "learnt":
            raise ConfigError(
                f'{self.name}: token_scales = "learnt" is for sparse encoders; a dense one takes "idf"'
            )
        if self.settings.token_scales == "idf" and encoder.layout.mode != "mean":
            raise ConfigError(f"{self.name}: this model's vectors are no means, so token scales don't apply")
        if self.settings.token_scales == "idf" and encoder.token_scales is None:
            size = encoder.vocabulary_size
            background = None if self.background is None else self.background.share(size)
            encoder.token_scales = of_mean(self._counted(), size, background)
            if isinstance(self.background, DenseBackground):
                self.background.count_as(encoder)

    def _counted(self) -> list[list[int]]:
        """Token ids of the documents that an idf is computed from."""
        from sparse_adapt.model.idf import rows_for_idf

        return [self.documents[row] for row in rows_for_idf(len(self.documents))]

    def _projected(self, vectors: "Tensor") -> "Tensor":
        """Vectors (B, H) as they are compared: through the projection where there is one."""
        projected: Tensor = vectors if self.projection is None else self.projection(vectors)
        return projected

    def _mask(self, ids: list[int], random: "Generator") -> tuple[list[int], list[int]]:
        """Words that the softmax runs over, hidden at the stage's rate; labels are SHOWN elsewhere."""
        from sparse_adapt.plugins.research.stages.masked import SHOWN

        labels = [SHOWN] * len(ids)
        if not isinstance(self.settings, Joint):
            return ids, labels
        chances, masked = random.random(len(ids)), list(ids)
        for place, token in enumerate(ids):
            if chances[place] < self.settings.mask_rate and token in self.maskable:
                masked[place], labels[place] = self.mask_id, token
        return masked, labels


def _projection(name: str, encoder: "Encoder", settings: Contrast) -> "nn.Module | None":
    """What stands between vectors and loss; None where nothing does."""
    from sparse_adapt.model.sentence import SentenceEncoder
    from sparse_adapt.plugins.research.stages.pair_losses import Projection

    if settings.projection and not isinstance(encoder, SentenceEncoder):
        raise ConfigError(
            f"{name}: projection = true is for dense encoders; a sparse one is scored by its own dimensions"
        )
    wanted = settings.form == "nt-xent" if settings.projection is None else settings.projection
    if wanted and isinstance(encoder, SentenceEncoder):
        return Projection(encoder.width, settings.seed)
    return None


def _vocabulary(encoder: "Encoder", settings: Joint) -> list[int]:
    """The tokens that are masked, and that the softmax runs over: the new ones, or all."""
    if settings.masked == "all":
        return list(range(encoder.vocabulary_size))
    if not encoder.new_tokens:
        raise ConfigError(
            'joint: this model has no new tokens to mask; extend it first, or set masked = "all"'
        )
    return sorted(token.token_id for token in encoder.new_tokens)


def build(name: str, encoder: "EitherEncoder", inputs: Inputs, settings: Contrast) -> "Task[Encoder]":
    """The task of the stage of that name over pairs."""
    from sparse_adapt.model.kinds import load_encoder

    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    extended = inputs.model if settings.weights.anchor > 0.0 else None
    before = before_extension(extended, str(encoder.device), load_encoder)
    return Pairing(name, encoder, inputs[PAIRS], documents, settings, before)


# MOSAIC has one rate for all weights, 1 to 5 epochs, and texts of 64 to 256 tokens: the upper ends here.
OF_MOSAIC = {
    "batch_size": 128,
    "learning_rate": 5e-4,
    "new_learning_rate": 5e-4,
    "weight_decay": 0.01,
    "ramp": 0.06,
    "longest": 256,
    "epochs": 5,
}
# After dynamic masking: a batch isn't gathered of smaller ones, for its texts are each other's negatives.
OF_ZHANG = {
    "form": "nt-xent",
    "batch_size": 256,
    "learning_rate": 2e-5,
    "new_learning_rate": 2e-5,
    "ramp": 0.1,
    "longest": 128,
    "epochs": 10,
}
PRESETS: Mapping[str, Mapping[str, Preset]] = {
    "joint": {"mosaic": OF_MOSAIC},
    "contrast": {"mosaic": OF_MOSAIC, "zhang": OF_ZHANG},
}
JOINT, CONTRAST = (
    Stage(
        name,
        kind,
        (PAIRS, CORPUS),
        partial(build, name),
        refuses=("table", "beside") if name == "joint" else ("table",),
        presets=PRESETS[name],
        texts=1.1,
    )
    for name, kind in (("joint", Joint), ("contrast", Contrast))
)
