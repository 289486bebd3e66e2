"""Table: what each token of a query weighs where no model reads queries.

It is learnt from a teacher's scores, while documents are held still.

A weight begins at the token's inverse document frequency, or where the model's own table has it, and is multiplied by
a scale that is learnt; the logarithm of the factor is a sum of two parts. One is a linear map of the token's input
embedding: tokens that no synthetic query says learn by it, too. The other is the token's own, held to zero.
After Nardini, Nguyen, Rulli, Venturini and Yates 2025 (Li-LSR, arXiv:2505.01452), who learn a map alone, and documents
with it; here the documents may learn afterwards, in the stage `rank`.
Dimensions: Q queries, N candidates each, T tokens of a query, V vocabulary, H width of the embeddings.
A loss term is a scalar: ().
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sparse_adapt.objectives.loss_terms import OBJECTIVES, term
from sparse_adapt.objectives.scoring import Scoring
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, Inputs
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray
    from torch import Tensor

    from sparse_adapt.collection.examples import Candidates
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.query_side import QuerySide
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.model.tokens import TokenIds
    from sparse_adapt.objectives.scores import Compared, Drawn
    from sparse_adapt.training import losses
    from sparse_adapt.training.loop import Task


class TableWeights(Settings):
    """Weights of the loss terms."""

    kd: float = term(
        1.0,
        "Distance of the scores to the teacher's, as `kd` counts it.",
        f"{OBJECTIVES}.scores:kd",
        source="Nardini et al. 2025, arXiv:2505.01452",
    )
    hold: float = term(
        0.05,
        "How far the tokens of a query are from where they started.",
        "sparse_adapt.stages.query_table:hold",
    )


class QueryTable(Scoring):
    """Give queries a table of token weights in the place of the model. The model itself stays as it is."""

    weights: TableWeights = setting(TableWeights(), "Weights of the loss terms.")
    train: Trained = setting("all", "No effect here: the table learns, and nothing else.")
    steps: int | None = setting(400, ge=1)
    batch_size: int = setting(64, "Queries of a step, each with its candidates.", unit="queries", ge=1)
    new_learning_rate: float = setting(0.02, "Highest learning rate of the logarithms of weights.", gt=0)
    temperature: float = setting(2.0, gt=0)
    shrinkage: float = setting(
        0.25,
        "Shrinkage of learnt token scales towards 1. By this much synthetic queries that were set aside are answered "
        "best, over four collections and three seeds.",
        unit="share of the way",
        ge=0,
        lt=1,
    )


@dataclass(frozen=True, slots=True)
class Questions:
    """Some queries: their tokens (Q, T), filled up with token 0, and what each candidate weighs there (Q, N, T)."""

    drawn: "Drawn"
    tokens: "Tensor"
    mask: "Tensor"  # (Q, T), whether there is a token
    weights: "Tensor"


class TokenWeights:
    """The task over queries with scored candidates, for `training.train`."""

    name = "query-table"

    def __init__(
        self,
        encoder: "SparseEncoder",
        candidates: "Sequence[Candidates]",
        documents: Mapping[str, str],
        settings: QueryTable,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        The encoder gets a table here, unless it has one: that of the inverse document frequencies.
        """
        import numpy as np

        from sparse_adapt.objectives.loss_terms import functions
        from sparse_adapt.objectives.scores import ScoreComparison, Scored
        from sparse_adapt.objectives.token_scales import TokenGains

        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.scored = Scored(candidates, list(documents))
        token_ids = encoder.tokenize(list(documents.values()))
        if encoder.query_side is None:
            encoder.query_side = _first_table(encoder, token_ids)
        encoder.fold_scales()
        self.start: NDArray[np.float32] = encoder.query_side.weights
        self.queries = [
            np.array([token for token in dict.fromkeys(ids) if self.start[token]], np.int64)
            for ids in encoder.tokenize([entry.query for entry in candidates], "query")
        ]
        self.candidates = self._at_tokens(encoder, token_ids)
        self.beside = TokenGains(encoder.input_rows.detach().cpu(), settings.new_learning_rate)
        scale = self._first_scale() if settings.calibrate else None
        self.comparison = ScoreComparison(settings.kd, settings.temperature, scale)

    def batch(self, random: "Generator") -> Questions:
        """Queries drawn without repetition, each with all of its candidates."""
        return self._questions(self.scored.draw(self.settings.batch_size, random))

    def terms(self, encoder: "SparseEncoder", batch: Questions) -> "dict[str, Tensor]":
        """Each term of what the table makes of a batch, unweighted."""
        reading = TableReading(self, batch)
        return {key: function(reading) for key, function in self.functions.items()}

    def conclude(self, encoder: "SparseEncoder") -> Mapping[str, object]:
        """Give the encoder the table that was learnt; how much it differs from the first one, for the record."""
        import numpy as np
        import torch

        assert encoder.query_side is not None
        with torch.no_grad():
            gain = self.beside(torch.arange(len(self.start), device=self.beside.own.device)).cpu().numpy()
        gain *= 1.0 - self.settings.shrinkage
        encoder.query_side = encoder.query_side.times(np.exp(gain))
        tokens = np.unique(np.concatenate([np.zeros(0, np.int64), *self.queries]))
        moved = float(np.abs(gain[tokens]).mean()) if len(tokens) else 0.0
        return {"tokens_said": len(tokens), "mean_change": round(moved, 5)}

    def _at_tokens(
        self, encoder: "SparseEncoder", token_ids: "Sequence[TokenIds]"
    ) -> "list[NDArray[np.float32]]":
        """For each query what its candidates weigh at its tokens: (N, T). Documents are read once."""
        import numpy as np

        from sparse_adapt.objectives.texts import vectors

        rows = sorted(
            {self.scored.row[name] for entry in self.scored.candidates for name in entry.document_ids}
        )
        read = encoder.form.pruned(vectors(encoder, [token_ids[row] for row in rows]))
        place = {row: number for number, row in enumerate(rows)}
        sums = []
        for entry, tokens in zip(self.scored.candidates, self.queries, strict=True):
            places = [place[self.scored.row[name]] for name in entry.document_ids]
            sums.append(read[places][:, tokens].toarray().astype(np.float32))
        return sums

    def _questions(self, drawn: "Drawn") -> Questions:
        import torch

        longest = max([1, *(len(self.queries[row]) for row in drawn.queries)])
        shape = len(drawn.queries), longest
        tokens, mask = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
        weights = torch.zeros(len(drawn.queries), drawn.places.shape[1], longest)
        for number, row in enumerate(drawn.queries):
            own, candidates = self.queries[row], self.candidates[row]
            tokens[number, : len(own)], mask[number, : len(own)] = torch.from_numpy(own), True
            weights[number, : len(candidates), : len(own)] = torch.from_numpy(candidates)
        return Questions(drawn, tokens, mask, weights)

    def _first_scale(self) -> "losses.Scale":
        """How the teacher's scores map to those that the first table gives."""
        import torch

        questions = self._questions(self.scored.evenly())
        start = torch.from_numpy(self.start)[questions.tokens]
        student = (questions.weights * start.unsqueeze(1)).sum(dim=-1)
        return self.scored.scale(questions.drawn, student)


@dataclass
class TableReading:
    """What one step has read."""

    task: TokenWeights
    questions: Questions

    @cached_property
    def gain(self) -> "Tensor":
        """Logarithm of the factor of each token of the queries: (Q, T)."""
        gains: Tensor = self.task.beside(self.questions.tokens.to(self.task.beside.own.device))
        return gains

    @cached_property
    def compared(self) -> "Compared":
        """The scores of the candidates beside the teacher's."""
        import torch

        device = self.gain.device
        start = torch.from_numpy(self.task.start)[self.questions.tokens].to(device)
        weights = start * self.gain.exp() * self.questions.mask.to(device)
        scores = (self.questions.weights.to(device) * weights.unsqueeze(1)).sum(dim=-1)
        return self.task.scored.compared(scores, self.questions.drawn, self.task.comparison)


def hold(read: TableReading) -> "Tensor":
    """The mean over queries of the squared own parts of their tokens' token scales."""
    own, mentions = read.task.beside.own, read.questions.mask.to(read.task.beside.own.device)
    return (own[read.questions.tokens.to(own.device)].square() * mentions).sum(dim=1).mean()


def _first_table(encoder: "SparseEncoder", token_ids: "Sequence[TokenIds]") -> "QuerySide":
    """The table of an encoder that has none: inverse document frequencies, nothing for special tokens."""
    from sparse_adapt.model.query_side import idf_side

    weightless = list(encoder.tokenizer.all_special_ids)
    return idf_side(token_ids, encoder.vocabulary_size, encoder.max_tokens, weightless)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: QueryTable) -> "Task[SparseEncoder]":
    """The task over queries with scored candidates; the encoder weighs queries by a table from now on."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.scores import with_theirs

    assert isinstance(encoder, SparseEncoder), "no dense encoder takes this stage"
    entries = inputs[CANDIDATES]
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    return TokenWeights(encoder, entries, with_theirs(documents, entries), settings)


QUERY_TABLE = Stage("query-table", QueryTable, (CANDIDATES, CORPUS), build, dense=False, texts=0.0)
