"""What each token of a query weighs where no model reads queries: learnt from a teacher's scores, documents held still.

A weight begins at the token's inverse document frequency, or where the model's own table has it, and is multiplied by
a factor that is learnt; the logarithm of the factor is a sum of two parts. One is a linear map of the token's input
embedding: tokens that no made-up query says learn by it, too. The other is the token's own, held to zero.
After Nardini, Nguyen, Rulli, Venturini and Yates 2025 (Li-LSR, arXiv:2505.01452), who learn a map alone, and documents
with it; here the documents may learn afterwards, in the stage `imitate`.
Dimensions: Q queries, N candidates each, T tokens of a query, V vocabulary, H width of the embeddings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.query_side import QuerySide, idf_side
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.parts.scored import Compared, Comparison, Drawn, Scored
from sparse_adapt.stages.parts.texts import vectors
from sparse_adapt.stages.query_side import QueryTable
from sparse_adapt.stages.terms import functions
from sparse_adapt.training import losses

MAP_RATE = 0.25  # of the rate of a token's own part: every query moves the map


class Factors(nn.Module):
    """What the weight of each token is multiplied by: (V), 1 at first."""

    def __init__(self, embeddings: Tensor, learning_rate: float) -> None:
        """`embeddings`: (V, H), of the model's input."""
        super().__init__()
        self.learning_rate = learning_rate
        spread = embeddings.float() - embeddings.float().mean(dim=0)
        self.embeddings: Tensor
        self.register_buffer("embeddings", spread / spread.std().clamp_min(1e-6), persistent=False)
        self.own = nn.Parameter(torch.zeros(len(embeddings)))
        self.map = nn.Parameter(torch.zeros(embeddings.shape[1] + 1))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logarithms of the factors of some tokens, in the shape in which these are given."""
        shared = self.embeddings[tokens] @ self.map[:-1] + self.map[-1]
        found: Tensor = MAP_RATE * shared + self.own[tokens]
        return found


@dataclass(frozen=True, slots=True)
class Questions:
    """Some queries: their tokens (Q, T), filled up with token 0, and what each candidate weighs there (Q, N, T)."""

    drawn: Drawn
    tokens: Tensor
    said: Tensor  # (Q, T), whether there is a token
    weights: Tensor


class TokenWeights:
    """The task over queries with scored candidates, for `training.train`."""

    name = "table"

    def __init__(
        self,
        encoder: SparseEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: QueryTable,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        The encoder gets a table here, unless it has one: that of the inverse document frequencies.
        """
        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.scored = Scored(candidates, list(documents))
        token_ids = encoder.tokenize(list(documents.values()))
        if encoder.query_side is None:
            encoder.query_side = _first_table(encoder, token_ids)
        encoder.fold_factors()
        self.start: NDArray[np.float32] = encoder.query_side.weights
        self.queries = [
            np.array([token for token in dict.fromkeys(ids) if self.start[token]], np.int64)
            for ids in encoder.tokenize([entry.query for entry in candidates], "query")
        ]
        self.held = self._at_tokens(encoder, token_ids)
        self.beside = Factors(encoder.input_rows.detach().cpu(), settings.new_learning_rate)
        scale = self._first_scale() if settings.calibrate else None
        self.comparison = Comparison(settings.kd, settings.temperature, scale)

    def batch(self, random: Generator) -> Questions:
        """Queries drawn without repetition, each with all of its candidates."""
        return self._questions(self.scored.draw(self.settings.batch_size, random))

    def terms(self, encoder: SparseEncoder, batch: Questions) -> dict[str, Tensor]:
        """Each term of what the table makes of a batch, unweighted."""
        reading = TableReading(self, batch)
        return {key: function(reading) for key, function in self.functions.items()}

    def conclude(self, encoder: SparseEncoder) -> Mapping[str, Any]:
        """Give the encoder the table that was learnt; how much it differs from the first one, for the record."""
        assert encoder.query_side is not None
        with torch.no_grad():
            gain = self.beside(torch.arange(len(self.start), device=self.beside.own.device)).cpu().numpy()
        gain *= 1.0 - self.settings.back
        encoder.query_side = encoder.query_side.times(np.exp(gain))
        said = np.unique(np.concatenate([np.zeros(0, np.int64), *self.queries]))
        moved = float(np.abs(gain[said]).mean()) if len(said) else 0.0
        return {"tokens_said": len(said), "mean_change": round(moved, 5)}

    def _at_tokens(self, encoder: SparseEncoder, token_ids: Sequence[TokenIds]) -> list[NDArray[np.float32]]:
        """For each query what its candidates weigh at its tokens: (N, T). Documents are read once."""
        rows = sorted(
            {self.scored.row[name] for entry in self.scored.candidates for name in entry.document_ids}
        )
        read = encoder.form.kept(vectors(encoder, [token_ids[row] for row in rows]))
        place = {row: number for number, row in enumerate(rows)}
        found = []
        for entry, tokens in zip(self.scored.candidates, self.queries, strict=True):
            places = [place[self.scored.row[name]] for name in entry.document_ids]
            found.append(read[places][:, tokens].toarray().astype(np.float32))
        return found

    def _questions(self, drawn: Drawn) -> Questions:
        longest = max([1, *(len(self.queries[row]) for row in drawn.queries)])
        shape = len(drawn.queries), longest
        tokens, said = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
        weights = torch.zeros(len(drawn.queries), drawn.places.shape[1], longest)
        for number, row in enumerate(drawn.queries):
            own, held = self.queries[row], self.held[row]
            tokens[number, : len(own)], said[number, : len(own)] = torch.from_numpy(own), True
            weights[number, : len(held), : len(own)] = torch.from_numpy(held)
        return Questions(drawn, tokens, said, weights)

    def _first_scale(self) -> losses.Scale:
        """How the teacher's scores map to those that the first table gives."""
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
    def gain(self) -> Tensor:
        """Logarithm of the factor of each token of the queries: (Q, T)."""
        found: Tensor = self.task.beside(self.questions.tokens.to(self.task.beside.own.device))
        return found

    @cached_property
    def compared(self) -> Compared:
        """The scores of the candidates beside the teacher's."""
        device = self.gain.device
        start = torch.from_numpy(self.task.start)[self.questions.tokens].to(device)
        asked = start * self.gain.exp() * self.questions.said.to(device)
        scores = (self.questions.weights.to(device) * asked.unsqueeze(1)).sum(dim=-1)
        return self.task.scored.compared(scores, self.questions.drawn, self.task.comparison)


def hold(read: TableReading) -> Tensor:
    """The mean over queries of the squared own parts of their tokens' factors."""
    own, said = read.task.beside.own, read.questions.said.to(read.task.beside.own.device)
    return (own[read.questions.tokens.to(own.device)].square() * said).sum(dim=1).mean()


def _first_table(encoder: SparseEncoder, token_ids: Sequence[TokenIds]) -> QuerySide:
    """The table of an encoder that has none: inverse document frequencies, nothing for special tokens."""
    silent = list(encoder.tokenizer.all_special_ids)
    return idf_side(token_ids, encoder.vocabulary_size, encoder.max_tokens, silent)
