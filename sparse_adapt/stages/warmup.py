"""Warm-up: the new rows learn from the corpus, and nothing else moves.

Masked language modelling alone teaches a row what stands beside its word, and, when it trains every weight,
costs the model its sparsity. Here it is one of four terms, over the domain's vocabulary, for the new rows. The
dictionary stage learns by the same terms (`TermTask`): it moves every weight, and holds with an anchor what isn't
asked to change. Beside the corpus a step reads general passages, which no term is about. `mlm` teaches the masked word,
over the domain's vocabulary; `anchor` the base model's own vector of a text in its old pieces, on the old dimensions;
`domain` that a term is active where it is said and inactive elsewhere; `recall` that it is active where it is meant.

Dimensions: B texts, D new tokens, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sparse_adapt.errors import ConfigError
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS, Inputs
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Training

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray
    from torch import Tensor

    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.model.tokens import TokenIds
    from sparse_adapt.objectives.meanings import Sources
    from sparse_adapt.objectives.texts import Texts
    from sparse_adapt.synthetic.windows import Samples, SyntheticTexts
    from sparse_adapt.training.shared_steps import SharedFeatures

SAMPLES = 128  # synthetic texts a step at most, where their number goes by that of the terms; they are short
ANCHORED = 16  # synthetic texts that the anchor holds where every weight learns: the first, background ones among them
SYNTHETIC_SHARE = 0.5  # what the anchor on them counts beside that on documents


class WarmupWeights(Settings):
    """Weights of the loss terms."""

    mlm: float = setting(0.1, "Masked words, guessed among the domain's words.", ge=0)
    anchor: float = setting(1.0, "Distance of the old dimensions to what the base model has there.", ge=0)
    domain: float = setting(1.0, "A term is active where it is said, and nowhere else.", ge=0)
    recall: float = setting(1.0, "A term is active where it is meant, in synthetic texts.", ge=0)


class Warmup(Training):
    """Guess masked words of the corpus, and learn where a term is said. Only the rows of new tokens learn."""

    steps: int | None = setting(100, ge=1)
    weights: WarmupWeights = setting(WarmupWeights(), "Weights of the loss terms.")
    mask_rate: float = setting(
        0.15,
        "How often an ordinary token is masked.",
        unit="share of the tokens",
        source="Devlin et al. 2019, arXiv:1810.04805",
        gt=0,
        lt=1,
    )
    new_mask_rate: float = setting(
        0.5, "How often the token of a new term is masked.", unit="share of the tokens", gt=0, lt=1
    )
    term_texts: float = setting(
        0.5,
        "How many of a step's texts are drawn among those that say a new term.",
        unit="share of the texts",
        ge=0,
        le=1,
    )
    softmax: Literal["domain", "full"] = setting(
        "domain",
        "What a masked word is guessed among: the tokens of the stage's texts, or the whole vocabulary.",
    )
    targets: Targets | None = setting(
        None, "Logits that a term should have; the default follows from the number of terms."
    )
    inactive_weight: float = setting(
        2.0,
        "Weight of texts that don't mean a term, beside those that do: a higher one gives fewer false activations.",
        ge=0,
    )
    labeller: str = setting(
        "none",
        "Dense encoder that tells which term a synthetic text means; with `none` a text means what it was made from.",
    )
    samples: int | None = setting(
        None,
        "Synthetic texts of a step that are drawn from everywhere; the default follows from the number of terms.",
        unit="texts",
        ge=1,
    )
    shared_steps: float = setting(
        2.0,
        "How fast words that the labeller finds alike learn together, beside the learning rate of all weights.",
        source="Mikolov et al. 2013, arXiv:1309.4168",
        ge=0,
    )
    raw_logits: bool = setting(
        True, "Whether terms are held to raw logits. Pooled weights give an inactive token no gradient."
    )


# Masked language modelling of all weights over the whole vocabulary, as published: of texts from anywhere, all tokens
# at one rate.
PUBLISHED = {
    "train": "all",
    "learning_rate": 5e-5,
    "new_learning_rate": 5e-5,
    "epochs": 50,
    "batch_size": 4,
    "ramp": 0.0,
    "new_mask_rate": 0.15,
    "term_texts": 0.0,
    "softmax": "full",
    "labeller": "none",
    "weights": {"mlm": 1.0, "anchor": 0.0, "domain": 0.0, "recall": 0.0},
}


@dataclass(frozen=True, slots=True)
class TermBatch:
    """Rows of the stage's texts, a masked copy of them with its labels, and texts that mean terms."""

    rows: list[int]
    masked: list[list[int]]
    labels: list[list[int]]  # the word that was masked, or -1
    samples: "Samples"
    general: list[int]  # rows of general passages


class TermTask:
    """One stage over texts: batches and loss terms, for `training.train`."""

    def __init__(
        self,
        name: str,
        encoder: "SparseEncoder",
        texts: "Texts",
        about: "NDArray[np.bool_]",
        settings: Warmup,
        steps: int,
        also: "Sources | None" = None,
        documents: Sequence[int] = (),
        share: float = 1.0,
    ) -> None:
        """`about`: (texts, D), which terms a text is about even where it doesn't say them.

        `also`: further sources of synthetic texts, which aren't read themselves. `documents`: the rows of those texts
        that a search is to find. `share`: of the texts that a labeller reads, where few are learnt from.
        """
        import copy

        from sparse_adapt.objectives.meanings import Sources, meanings
        from sparse_adapt.objectives.texts import GENERAL, Remembered, Texts, general_passages

        self.name, self.steps = name, steps
        self.targets = settings.targets or Targets.of(labelled=settings.labeller != "none")
        self.settings = settings = settings.model_copy(update={"targets": self.targets})
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.texts, self.about = texts, about
        reference = copy.deepcopy(encoder).requires_grad_(False)
        self.reference = reference
        self.before = Remembered(reference, texts.old_ids)
        self.moves = settings.train != "new"  # more than the rows of new tokens
        self.anchored = self.moves and self.weights["anchor"] > 0.0  # texts that say no term, too
        has_labels = self.anchored or self.weights["domain"] > 0.0
        self.general = general_passages(encoder) if has_labels else Texts(encoder, [])
        self.general_before = Remembered(reference, self.general.old_ids, GENERAL)
        self.anchored_texts = ANCHORED if self.anchored else 0  # synthetic texts
        sources = Sources(texts.sources, about)
        sources = sources if also is None else sources + also
        self.meanings = meanings(reference, sources, settings.labeller, settings.seed, documents, share)
        self.shared_features = shared_features(self.meanings, settings)
        self.vocabulary = domain_vocabulary(texts, settings.softmax)
        self.mask_id = encoder.tokenizer.mask_token_id
        self.special = set(encoder.tokenizer.all_special_ids)

    def begin(self, encoder: "SparseEncoder") -> None:
        """Give the new tokens the rows that teach most while the body stands still, where a labeller knows what is
        meant.

        They are fitted to synthetic texts, to the stage's own and to general passages, whose states are computed once.
        """
        import numpy as np

        from sparse_adapt.objectives.rows import FITTED, Fitting, FittingExamples, fit_rows, fitted_texts

        if self.settings.labeller == "none" or self.weights["recall"] == 0.0 or not self.texts.new:
            return
        settings, terms = self.settings, np.arange(self.texts.new)
        samples = self.meanings.draw(FITTED, np.random.default_rng(settings.seed))
        about = self.about | self.meanings.unknown[: len(self.texts)]
        read = fitted_texts(self.texts, about, self.general, terms)
        examples = FittingExamples(read.says, read.inactive, samples, self.targets, settings.inactive_weight)
        how = Fitting((self.texts.first + terms).tolist(), settings.seed)
        fit_rows(encoder, [*read.token_ids, *samples.token_ids], examples, how)

    def batch(self, random: "Generator") -> TermBatch:
        """Some of the texts say a term where any does; the others come from anywhere."""
        from sparse_adapt.objectives.texts import some_passages

        count = self.settings.batch_size
        if self.settings.epochs is not None:  # a pass over fewer texts is a smaller batch
            count = min(count, len(self.texts))
        rows = [int(row) for row in random.choice(len(self.texts), count)]
        saying = int(self.settings.term_texts * count) if len(self.texts.saying) else 0
        if saying:
            rows[:saying] = [int(row) for row in random.choice(self.texts.saying, saying)]
        masked = [self._mask(list(self.texts.parts(row)), random) for row in rows]
        drawn = self.settings.samples or max(2 * count, min(SAMPLES, 4 * self.texts.new))
        samples = self.meanings.draw(drawn, random)
        general = some_passages(self.general, random) if len(self.general) else []
        return TermBatch(rows, [ids for ids, _ in masked], [labels for _, labels in masked], samples, general)

    def terms(self, encoder: "SparseEncoder", batch: TermBatch) -> "dict[str, Tensor]":
        """`mlm`, `anchor`, `domain` and `recall`, unweighted: a scalar each, ()."""
        import numpy as np
        import torch

        from sparse_adapt.objectives.meanings import new_logits, recall
        from sparse_adapt.objectives.texts import marks
        from sparse_adapt.training import losses

        settings, targets = self.settings, self.targets
        says = np.concatenate([self.texts.says[batch.rows], self.general.says[batch.general]])
        whole = says.any(axis=1) | self.anchored  # read to their vectors; the others for new tokens alone
        set_aside = batch.samples.token_ids[: self.anchored_texts]
        read, anchor = self._anchored(encoder, batch, np.flatnonzero(whole), set_aside)
        token_ids = self._token_ids(batch)
        new = encoder.output_rows.new_zeros(len(token_ids), self.texts.new)
        unread = np.flatnonzero(~whole)
        new[np.flatnonzero(whole)] = read[: whole.sum()]
        unsaid = [[token_ids[row] for row in unread], batch.samples.token_ids[self.anchored_texts :]]
        new[unread], rest = (new_logits(encoder, ids, self.texts, self.moves) for ids in unsaid)
        logits = torch.cat([read[whole.sum() :], rest])
        if not settings.raw_logits:
            new, logits = encoder.form.activate(new), encoder.form.activate(logits)
        about = self.about[batch.rows] | self.meanings.unknown[batch.rows]
        about = np.concatenate([about, self.general.says[batch.general]])
        above = losses.hinge_above(new, marks(says, new), targets.mention)
        below = losses.hinge_below(new, marks(~about, new), targets.none)
        return {
            "mlm": self._masked_words(encoder, batch),
            "anchor": anchor,
            "domain": above + settings.inactive_weight * below,
            "recall": recall(logits, batch.samples, targets, settings.inactive_weight),
        }

    def _token_ids(self, batch: TermBatch) -> list[list[int]]:
        """The documents and then the general passages of a step."""
        return [self.texts.ids[row] for row in batch.rows] + [self.general.ids[row] for row in batch.general]

    def _anchored(
        self,
        encoder: "SparseEncoder",
        batch: TermBatch,
        whole: "NDArray[np.int64]",
        set_aside: "Sequence[TokenIds]",
    ) -> "tuple[Tensor, Tensor]":
        """Largest raw logits of the new tokens (B, D), and how far the texts are from what they were.

        Of those documents and passages of a step that `whole` counts, and then of `set_aside`, synthetic texts.
        """
        import torch

        from sparse_adapt.training import losses

        count = len(batch.rows)
        anchor = encoder.output_rows.sum() * 0.0
        if not len(whole) and not set_aside:
            return encoder.output_rows.new_zeros(0, self.texts.new), anchor
        rows = [batch.rows[place] for place in whole if place < count]
        general = [batch.general[place - count] for place in whole if place >= count]
        with torch.no_grad():
            before = torch.cat([self.before.weights(rows), self.general_before.weights(general)])
        token_ids = self._token_ids(batch)
        pooled = encoder(
            [*(token_ids[place] for place in whole), *set_aside],
            self.texts.unclipped_beside(before, len(set_aside)),
        )
        now = losses.unclipped(pooled.maximum[: len(whole)], before, encoder.form.activate)
        compared = torch.cat([self.texts.comparable(rows), self.general.comparable(general)])
        for part in (slice(len(rows)), slice(len(rows), len(whole))):
            if len(before[part]):
                anchor = anchor + losses.drift(now[part], before[part], compared[part].to(now.device))
        anchor = anchor + SYNTHETIC_SHARE * self._distance(pooled.weights[len(whole) :], set_aside)
        return pooled.maximum[:, self.texts.first : self.texts.first + self.texts.new], anchor

    def _distance(self, weights: "Tensor", token_ids: Sequence[Sequence[int]]) -> "Tensor":
        """Distance of synthetic texts (B, V) to what they were."""
        import torch

        from sparse_adapt.training import losses

        if not token_ids:
            return weights.sum() * 0.0
        with torch.no_grad():
            before = self.reference.weights(token_ids)
        return losses.distance(weights, before, self.texts.old_dimensions(len(token_ids)).to(weights.device))

    def _mask(
        self, parts: "Sequence[tuple[int, TokenIds]]", random: "Generator"
    ) -> tuple[list[int], list[int]]:
        """Whole tokens at the stage's rates, new ones more often; labels are -1 where nothing was masked.

        One mask stands for all pieces that a term is beside, and the term is to be guessed there.
        """
        settings, first = self.settings, self.texts.first
        chances = random.random(len(parts))
        masked, labels = list[int](), list[int]()
        for chance, (token, ids) in zip(chances, parts, strict=True):
            rate = settings.new_mask_rate if token >= first else settings.mask_rate
            if chance < rate and token not in self.special:
                masked.append(self.mask_id)
                labels.append(token)
            else:
                masked += ids
                labels += [-1] * len(ids)
        return masked, labels

    def _masked_words(self, encoder: "SparseEncoder", batch: TermBatch) -> "Tensor":
        """Cross entropy of the masked words, (); logits only where one was masked, only over the vocabulary kept."""
        from sparse_adapt.model.tokens import pad
        from sparse_adapt.training import losses
        from sparse_adapt.training.sharing import own_share, summed_over_processes

        if self.mask_id is None or self.weights["mlm"] == 0.0:
            return encoder.output_rows.sum() * 0.0
        count = sum(label >= 0 for labels in batch.labels for label in labels)
        ids, attention = pad(own_share(batch.masked), encoder.tokenizer.pad_token_id or 0)
        labels = pad(own_share(batch.labels), -1)[0].to(encoder.device)
        chosen = labels >= 0
        if not chosen.any():
            return summed_over_processes(encoder.output_rows.sum() * 0.0)
        hidden = encoder.hidden(ids.to(encoder.device), attention.to(encoder.device))[chosen]
        mask = self.vocabulary.to(encoder.device)
        mean = losses.masked_words(hidden, encoder.output_rows, encoder.output_bias, labels[chosen], mask)
        return summed_over_processes(mean * (int(chosen.sum()) / count))


def shared_features(meanings: "SyntheticTexts", settings: Warmup) -> "SharedFeatures | None":
    """What the semantic labeller knows of words; None without one, or where they shall not learn by it."""
    import torch

    from sparse_adapt.training.shared_steps import SharedFeatures

    known = None if settings.shared_steps == 0.0 else meanings.word_features()
    if known is None:
        return None
    tokens, features = torch.from_numpy(known.token_ids), torch.from_numpy(known.features)
    return SharedFeatures(tokens, features, pace=settings.shared_steps)


def domain_vocabulary(texts: "Texts", softmax: str) -> "Tensor":
    """Sorted ids (n,) that the masked word is chosen among: those the texts hold and the new ones, or all (V,)."""
    import torch

    if softmax == "full":
        return torch.arange(texts.size)
    tokens = {token for ids in texts.ids for token in ids} | set(range(texts.first, texts.first + texts.new))
    return torch.tensor(sorted(tokens))


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Warmup) -> "TermTask":
    """The task over the documents of a corpus."""
    from sparse_adapt.model.sparse import SparseEncoder

    assert isinstance(encoder, SparseEncoder)
    return warmup(encoder, [document.full_text for document in inputs[CORPUS]], settings)


def warmup(encoder: "SparseEncoder", documents: Sequence[str], settings: Warmup) -> "TermTask":
    """The task over document texts. Raises ConfigError where no document says a new term."""
    from sparse_adapt.objectives.texts import Texts

    texts = Texts(encoder, documents)
    if encoder.new_tokens and not len(texts.saying):
        raise ConfigError(
            f"none of the {len(documents):,} documents holds any of the {len(encoder.new_tokens):,} new terms; "
            "warm up on a corpus that uses them"
        )
    return TermTask("warmup", encoder, texts, texts.says, settings, settings.steps_for(len(documents)))


WARMUP = Stage(
    "warmup",
    Warmup,
    (CORPUS,),
    build,
    dense=False,
    presets={"published": PUBLISHED},
    refuses=("sum", "table", "prompts"),
    texts=3.0,
)
