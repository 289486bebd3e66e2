"""Dynamic masking: of a sentence's words that the domain has to itself, those that the model finds hardest.

K candidates of each sentence are masked one at a time, and the model's own loss on each, summed over its pieces, is
the word's importance; the N hardest are then masked together, and learnt. After Zhang et al. 2025, Electronics 14,
4882, who draw candidates from all words of a sentence: those of the domain are ours. Importances hold for some
batches, which draw their sentences from those that have one: with the default settings each is learnt from four times
for once that its words are weighed, whatever the size of the corpus. Words are weighed without gradients, from the
tokens around them.

Terms: `mlm`, the masked words; `sparsity` (sparse encoders only), the expected scoring work of the sentences.
Dimensions: S sentences of the corpus, P of them in the pool, K candidates.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS, Inputs
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from torch import Tensor

    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.plugins.research.stages.sentences import Sentence
    from sparse_adapt.training.loop import Task

ZHANG = "Zhang et al. 2025, Electronics 14, 4882"


class DynamicWeights(Settings):
    """Weights of the loss terms."""

    mlm: float = setting(1.0, "Masked words, guessed among the domain's words.", ge=0)
    sparsity: float = setting(
        0.005,
        "Expected work of scoring the sentences. Dense encoders have no such term.",
        source="Paria et al. 2020, arXiv:2004.05665",
        ge=0,
    )


class Dynamic(Training):
    """Guess masked words of sentences: those of the domain that the model finds hardest."""

    weights: DynamicWeights = setting(DynamicWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    narrow_rate: ClassVar[float] = 1e-4
    new_learning_rate: float = setting(5e-3, gt=0)
    batch_size: int = setting(32, "How many sentences teach in one step.", unit="sentences", ge=1)
    masking: Literal["dynamic", "random"] = setting(
        "dynamic", "Which of a sentence's candidates are masked: the hardest, or any.", source=ZHANG
    )
    candidates: int = setting(
        5, "Words of a sentence that may be masked, K in the paper.", unit="words", source=ZHANG, ge=1
    )
    hardest: int = setting(
        3, "Words of a sentence that are masked together, N in the paper.", unit="words", source=ZHANG, ge=1
    )
    among: Literal["domain", "all"] = setting(
        "domain",
        "What the candidates are: new words, then rare ones and never common ones, which is ours, or words drawn "
        "from all of the sentence, as published.",
    )
    single_last: bool = setting(
        True,
        "Whether words that one text alone says may be masked only where there are too few others. For candidates "
        "of the domain.",
    )
    easing: bool = setting(
        False,
        "Whether fewer words are masked the longer it learns, down to one at the end.",
        source=f"future work in {ZHANG}",
    )
    summed: bool = setting(
        False, "Whether the loss is the sum over the masked words of a step, as published, or their mean."
    )
    together: int = setting(
        1,
        "Neighbouring sentences that are read as one text; 2 for pairs.",
        unit="sentences",
        source=ZHANG,
        ge=1,
    )
    refresh: int = setting(
        16, "Batches after which it is measured anew how hard each word is.", unit="batches", ge=1
    )
    visits: int = setting(4, "How often a sentence teaches between two measurements, on average.", ge=1)
    context: int = setting(
        24,
        "Tokens around a word that the model sees when it guesses the word, to tell how hard it is.",
        unit="tokens",
        ge=1,
    )
    longest: int = setting(64, "Tokens of a sentence that are read.", unit="tokens", ge=8)
    softmax: Literal["domain", "full"] = setting(
        "domain", "What a masked word is guessed among: the tokens of the corpus, or the whole vocabulary."
    )


@dataclass(frozen=True, slots=True)
class SentenceBatch:
    """Sentences with words masked; labels are the tokens that were, or SHOWN."""

    ids: list[list[int]]
    labels: list[list[int]]


class HardestWords:
    """The stage over the sentences of a corpus, for `training.train`."""

    name = "dynamic"

    def __init__(self, encoder: "Encoder", texts: Iterable[str], settings: Dynamic) -> None:
        """Raises ConfigError where there is nothing to mask, or nothing to mask it with."""
        from sparse_adapt.model.sparse import SparseEncoder
        from sparse_adapt.plugins.research.stages.masked import mask_token
        from sparse_adapt.plugins.research.stages.sentences import Pool, Sentences

        self.settings, self.encoder = settings, encoder
        self.mask_id = mask_token(encoder, self.name)
        self.sentences = Sentences(
            encoder,
            texts,
            longest=settings.longest,
            candidates=settings.candidates,
            together=settings.together,
            single_last=settings.single_last,
            every_word=settings.among == "all",
        )
        self._refuse_nothing_to_learn()
        self.steps = settings.steps_for(len(self.sentences.usable))
        self.weights: Mapping[str, float] = {
            key: weight
            for key, weight in settings.weights.model_dump().items()
            if isinstance(encoder, SparseEncoder) or key != "sparsity"
        }
        tokens = range(encoder.vocabulary_size) if settings.softmax == "full" else self.sentences.tokens
        self.vocabulary = sorted({*tokens, *self.sentences.new})
        wanted = math.ceil(settings.refresh * settings.batch_size / settings.visits)
        size = min(len(self.sentences.usable), max(settings.batch_size, wanted))
        self.candidates = settings.candidates * settings.together  # of a text
        self.pool = self.beside = Pool(size, self.candidates)
        self.choosing_seconds = 0.0

    def _refuse_nothing_to_learn(self) -> None:
        sentences, new = self.sentences, len(self.encoder.new_tokens)
        if not sentences.usable:
            raise ConfigError(
                f"dynamic: none of the {sentences.skipped:,} sentences of the corpus holds a word to mask; "
                "check --corpus"
            )
        if new and not sentences.says_new():
            raise ConfigError(
                f"dynamic: none of the {len(sentences.usable) + sentences.skipped:,} sentences holds any of the "
                f"{new:,} new terms; teach on a corpus that uses them"
            )

    def conclude(self, encoder: object) -> dict[str, float]:
        """What the stage's record says of its sentences, and of the time that choosing words took."""
        return {
            "sentences": len(self.sentences.usable),
            "sentences_without_words": self.sentences.skipped,
            "sentences_repeated": self.sentences.repeated,
            "choosing_seconds": round(self.choosing_seconds, 2),
        }

    def tell(self, record: Mapping[str, Any]) -> str:
        """What a reader hears of it."""
        summary = f"{record['sentences']:,} sentences, "
        summary += f"{record['sentences_without_words']:,} without a word to mask left out"
        if self.settings.masking == "dynamic":
            share = record["choosing_seconds"] / max(record["seconds"], record["choosing_seconds"], 0.1)
            summary += f"; choosing words took {share:.0%} of the time"
        return summary

    def batch(self, random: "Generator") -> SentenceBatch:
        """Sentences of the pool, which is filled anew where its importances have held long enough."""
        if not int(self.pool.left):
            self._fill(random)
        self.pool.left -= 1
        self.pool.drawn += 1
        importances = self.pool.importances.cpu().numpy()
        sentences = self._considered((int(self.pool.drawn) - 1) // self.settings.refresh)
        count = min(self.settings.batch_size, len(sentences))
        ids, labels = [], []
        for place in sorted(random.choice(len(sentences), count, replace=False).tolist()):
            sentence = sentences[place]
            words = self._chosen(sentence, importances[place], random)
            masked, hidden = self._mask(sentence.token_ids, [sentence.words[word] for word in words])
            ids.append(masked)
            labels.append(hidden)
        return SentenceBatch(ids, labels)

    def terms(self, encoder: "Encoder", batch: SentenceBatch) -> "dict[str, Tensor]":
        """`mlm`, and `sparsity` where the encoder has it, unweighted: a scalar each, ()."""
        from sparse_adapt.plugins.research.stages.masked import SHOWN, read_masked
        from sparse_adapt.training import losses

        sparse = "sparsity" in self.weights
        vectors, words = read_masked(
            encoder, batch.ids, batch.labels, encoder.vectors if sparse else _nothing, self.vocabulary
        )
        if self.settings.summed:
            words = words * max(1, sum(label != SHOWN for text in batch.labels for label in text))
        return {"mlm": words, **({"sparsity": losses.flops(vectors)} if sparse else {})}

    @property
    def hardest(self) -> int:
        """How many words of a sentence are masked by now."""
        most, batches = self.settings.hardest, self.steps * self.settings.gradient_accumulation
        left = max(0.0, 1.0 - (int(self.pool.drawn) - 1) / max(1, batches - 1))
        return 1 + round((most - 1) * left) if self.settings.easing else most

    def _chosen(self, sentence: "Sentence", importances: "np.ndarray", random: "Generator") -> list[int]:
        """Which candidates of each sentence are masked: the hardest by importances (K,), or, without them, any."""
        import numpy as np

        chosen: list[int] = []
        for words, most in sentence.by_sentence():
            count = min(self.hardest, most, len(words))
            if self.settings.masking == "random":
                places = random.choice(len(words), count, replace=False)
            else:
                places = np.argsort(-importances[words.start : words.stop], kind="stable")[:count]
            chosen += [words[int(place)] for place in places]
        return chosen

    def _mask(self, ids: Sequence[int], words: Iterable[Sequence[int]]) -> tuple[list[int], list[int]]:
        from sparse_adapt.plugins.research.stages.masked import SHOWN

        masked, labels = list(ids), [SHOWN] * len(ids)
        for place in (place for word in words for place in word):
            masked[place], labels[place] = self.mask_id, ids[place]
        return masked, labels

    # -- what is hardest ----------------------------------------------------------------------

    def _fill(self, random: "Generator") -> None:
        """Other sentences for the next batches, and the importances of their words as the model is now."""
        import numpy as np
        import torch

        drawn = random.choice(len(self.sentences.usable), len(self.pool.rows), replace=False)
        self.pool.rows.copy_(torch.from_numpy(np.sort(drawn)))
        self.pool.left.fill_(self.settings.refresh)
        if self.settings.masking == "dynamic":
            started = time.monotonic()
            sentences = self._considered(int(self.pool.drawn) // self.settings.refresh)
            with torch.no_grad():
                self.pool.importances.copy_(self.importances(sentences))
            self.choosing_seconds += time.monotonic() - started

    def _considered(self, time: int) -> "list[Sentence]":
        """The sentences of the pool with K candidates each, where all words may be: others each time it is filled."""
        import numpy as np

        rows = self.pool.rows.tolist()
        sentences = [self.sentences.usable[row] for row in rows]
        if self.settings.among == "domain":
            return sentences
        draws = (np.random.default_rng((self.settings.seed, time, row)) for row in rows)
        most = self.settings.candidates
        return [sentence.drawn(most, draw) for sentence, draw in zip(sentences, draws, strict=True)]

    def importances(self, sentences: "Sequence[Sentence]") -> "Tensor":
        """The loss on each candidate masked alone, summed over its pieces: (sentences, K), 0 where there is none."""
        import torch

        from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, group_by_length, pad
        from sparse_adapt.plugins.research.stages.masked import SHOWN
        from sparse_adapt.training import losses

        encoder, size = self.encoder, self.candidates
        copies = [
            (row * size + number, *self._copy(sentence.token_ids, word))
            for row, sentence in enumerate(sentences)
            for number, word in enumerate(sentence.words)
        ]
        vocabulary = torch.tensor(self.vocabulary, device=encoder.device)
        costs = torch.zeros(len(sentences) * size, device=encoder.device)
        for group in group_by_length([len(ids) for _, ids, _ in copies], PADDED_TOKENS_A_PASS):
            ids, mask = pad([copies[each][1] for each in group], encoder.tokenizer.pad_token_id or 0)
            labels = pad([copies[each][2] for each in group], SHOWN)[0]
            hidden = labels != SHOWN
            owners = torch.tensor([copies[each][0] for each in group])[hidden.nonzero()[:, 0]]
            states = encoder.hidden(ids.to(encoder.device), mask.to(encoder.device))
            costs += losses.word_costs(
                encoder.for_words(states[hidden.to(encoder.device)]),
                encoder.output_rows,
                encoder.output_bias,
                labels[hidden].to(encoder.device),
                vocabulary,
                owners.to(encoder.device),
                len(costs),
            )
        return costs.view(len(sentences), size)

    def _copy(self, ids: Sequence[int], word: Sequence[int]) -> tuple[list[int], list[int]]:
        """What stands around a word, that masked, between the sentence's first and last token; and the labels."""
        masked, labels = self._mask(ids, [word])
        around = max(self.settings.context, len(word))
        first = max(1, min(word[0] - (around - len(word)) // 2, len(ids) - 1 - around))
        window = [0, *range(first, min(first + around, len(ids) - 1)), len(ids) - 1]
        return [masked[place] for place in window], [labels[place] for place in window]


def _nothing(states: "Tensor", attention_mask: "Tensor", input_ids: "Tensor") -> "Tensor":
    """In place of vectors that no term asks for: (B, 1)."""
    return states[:, 0, :1]


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Dynamic) -> "Task[Encoder]":
    """The task over the sentences of a corpus."""
    return HardestWords(encoder, [document.full_text for document in inputs[CORPUS]], settings)


# As Zhang et al. have it: candidates are drawn from all words, and the loss is a sum over sentences that are read in
# pairs. By our reading, words are guessed among the whole vocabulary, from the whole text, and weighed anew for each
# batch, and K of the words are drawn at random. The 256 texts of a step are read in eight parts.
OF_ZHANG = {
    "among": "all",
    "summed": True,
    "together": 2,
    "softmax": "full",
    "context": 128,
    "refresh": 1,
    "visits": 1,
    "batch_size": 32,
    "gradient_accumulation": 8,
    "learning_rate": 2e-5,
    "new_learning_rate": 2e-5,
    "longest": 128,
    "epochs": 10,
}

DYNAMIC = Stage(
    "dynamic",
    Dynamic,
    (CORPUS,),
    build,
    refuses=("prompts", "beside"),
    presets={"zhang": OF_ZHANG},
    texts=0.3,
)
