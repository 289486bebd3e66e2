"""A larger SPLADE model for other benchmarks: a dense encoder's body that copies a SPLADE model of the same vocabulary.

    python -m benchmarks.grafting CORPUS ... -o DIR [--encoder MODEL] [--model splade-tiny] [--effort 1]

It learns from the texts of the corpora and from general passages, without labels: first each token's logits, then the
vectors of whole texts (`preserve`). Writes a model folder.

The body keeps its weights. The decoder's rows are those of the SPLADE model, in the first part of the body's width;
principal components of the body's own embeddings fill the rest, and count nothing at first. The head's dense layer
begins as the ridge regression of the SPLADE model's on the body's last states, and `TokenLogits` teaches the rest.

The squared distance between two models' logits, summed over the vocabulary, needs no logit. Let s be a state and r a
row of the decoder, with the bias as a last coordinate. The distance, scaled by w over the vocabulary, is s'As - 2 s'Cz
+ z'Bz, with z the other model's state and A, C and B the sums of w rr' over the rows of both.
Dimensions: N tokens of all texts or of a batch, V vocabulary, H width of the body, S width of the SPLADE model.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple

import torch
from numpy.random import Generator
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, PreTrainedModel

from sparse_adapt.collection.readers import Document, read_documents, write_documents
from sparse_adapt.collection.streams import evenly, sample
from sparse_adapt.errors import ConfigError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.dense import SMALL, fast_precision
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.layout import transformer_in
from sparse_adapt.model.saved import longest_text, read_body, read_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, TokenIds, group_by_length, pad
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.settings import setting
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.background import background_pairs
from sparse_adapt.training.loop import train
from sparse_adapt.training.settings import Trained, Training, at_width

RIDGE = 1e-3  # of the mean variance of a state's coordinates
LOOKED_AT = 256  # documents that tell how often each token is active
RARE = 0.3  # how much of the distance counts every token alike; the rest counts tokens as often as they are active
WORDS = 96  # of a text that is read
DOCUMENTS = 60_000  # that are learnt from, of all
FITTED_ON = 2_000  # of these, for the head's first weights
STEPS = {"logits": 1_000, "preserve": 600}
RATE, WIDTH = 3e-4, 384  # of `preserve`, on the body that it was measured on


class HeadLayers(NamedTuple):
    """What stands between a body and its decoder: a dense layer, an activation, a norm."""

    dense: nn.Linear
    norm: nn.LayerNorm


def graft_body(source: ModelSource, sparse: SparseEncoder, token_ids: Sequence[TokenIds]) -> SparseEncoder:
    """A SPLADE model with the body of the encoder at `source`, and the head of `sparse`, fitted on some texts.

    token_ids: texts in the tokens of `sparse`. Raises ConfigError where the two vocabularies differ and for a body
    narrower than `sparse`, ModelError for a head of another kind than BERT's.
    """
    source = ModelFolder.of(source)
    place = transformer_in(source.path, source)
    if read_tokenizer(place, source).get_vocab() != sparse.tokenizer.get_vocab():
        raise ConfigError(
            f"{source}: its tokens aren't the SPLADE model's; choose two models with one vocabulary"
        )
    body = read_body(place, source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body.config.tie_word_embeddings = False
        masked_lm: PreTrainedModel = AutoModelForMaskedLM.from_config(body.config, dtype=torch.float32)
    masked_lm.base_model.load_state_dict(body.state_dict(), strict=False)  # without the pooler
    masked_lm.config.architectures = [type(masked_lm).__name__]
    masked_lm.eval()
    decoder, rows = masked_lm.get_output_embeddings(), sparse.output_rows
    if decoder.in_features < rows.shape[1]:
        raise ConfigError(
            f"{source}: its body is {decoder.in_features} wide, the SPLADE model {rows.shape[1]}"
        )
    head, theirs = layers_of_head(masked_lm, source), layers_of_head(sparse.masked_lm, "the SPLADE model")
    with torch.no_grad():
        _take_rows(masked_lm, sparse)
        for own, given in ((head.norm.weight, theirs.norm.weight), (head.norm.bias, theirs.norm.bias)):
            own.zero_()  # the other coordinates are silent
            own[: len(given)] = given
        _fit(masked_lm, head.dense, sparse, theirs.dense, token_ids)
    longest = min(sparse.max_tokens, longest_text(masked_lm, sparse.tokenizer))
    return SparseEncoder(masked_lm, sparse.tokenizer, (), longest, sparse.form).eval()


def layers_of_head(masked_lm: PreTrainedModel, source: ModelSource) -> HeadLayers:
    """The head of a masked language model. Raises ModelError for one that is made in another way than BERT's."""
    body, decoder = set(masked_lm.base_model.modules()), masked_lm.get_output_embeddings()
    outside = [each for each in masked_lm.modules() if each not in body and each is not decoder]
    layers = [each for each in outside if isinstance(each, nn.Linear)]
    norms = [each for each in outside if isinstance(each, nn.LayerNorm)]
    if len(layers) != 1 or len(norms) != 1:
        raise ModelError(
            f"{source}: its head has {len(layers)} dense layers and {len(norms)} norms, not one of each"
        )
    return HeadLayers(layers[0], norms[0])


def _take_rows(masked_lm: PreTrainedModel, sparse: SparseEncoder) -> None:
    """Give the decoder the SPLADE model's rows and biases, and principal components of the body's embeddings."""
    decoder, rows = masked_lm.get_output_embeddings(), sparse.output_rows
    input_rows: Tensor = masked_lm.get_input_embeddings().weight  # type: ignore[assignment]
    centred = input_rows - input_rows.mean(dim=0)
    directions = torch.linalg.eigh(centred.T @ centred)[1].flip(1)  # the largest first
    rest = centred @ directions[:, : decoder.in_features - rows.shape[1]]
    if rest.shape[1]:
        rest = rest * (rows.std() / rest.std())
    decoder.weight.copy_(torch.cat([rows, rest], dim=1))
    if sparse.output_bias is not None:
        decoder.bias.copy_(sparse.output_bias)


def _fit(
    masked_lm: PreTrainedModel,
    dense: nn.Linear,
    sparse: SparseEncoder,
    theirs: nn.Linear,
    token_ids: Sequence[TokenIds],
) -> None:
    """Fit the dense layer (N, H) to the SPLADE model's (N, S), repeated over the body's width.

    So the norm, which sees all of the width, finds the same mean and variance as the SPLADE model's.
    """
    found, wanted_of = [], []
    pad_id = sparse.tokenizer.pad_token_id or 0
    for group in group_by_length([len(ids) for ids in token_ids], PADDED_TOKENS_A_PASS):
        ids, mask = pad([token_ids[row] for row in group], pad_id)
        with _passing(dense) as ours, _passing(theirs) as of_theirs:
            for model in (masked_lm, sparse.masked_lm):
                model(input_ids=ids, attention_mask=mask)
        found.append(ours[0][0][mask.bool()])
        wanted_of.append(of_theirs[0][1][mask.bool()])
    states, wanted = _with_one(torch.cat(found)).double(), torch.cat(wanted_of).double()
    penalty = RIDGE * len(states) * states[:, :-1].var(dim=0).mean() * torch.eye(states.shape[1])
    solution = torch.linalg.solve(states.T @ states + penalty, states.T @ wanted).float()  # (H + 1, S)
    again = torch.arange(dense.out_features) % wanted.shape[1]
    dense.weight.copy_(solution[:-1].T[again])
    dense.bias.copy_(solution[-1][again])


@contextmanager
def _passing(layer: nn.Linear) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """What goes into a layer (B, L, H) and comes out of it (B, L, S) while the block runs."""
    seen: list[tuple[Tensor, Tensor]] = []
    hook = layer.register_forward_hook(lambda _, given, made: seen.append((given[0], made)))
    try:
        yield seen
    finally:
        hook.remove()


class Logits(Training):
    """Training by logits: all weights learn."""

    train: Trained = setting("all")
    steps: int | None = setting(1_000, ge=1)
    batch_size: int = setting(24, "Texts of a step.", unit="texts", ge=1)
    narrow_rate: ClassVar[float] = 1.5e-3


class TokenLogits:
    """Give each token of a text the logits that another model with the same vocabulary gives it."""

    name = "logits"
    weights: ClassVar[dict[str, float]] = {"logits": 1.0}

    def __init__(
        self, encoder: SparseEncoder, teacher: SparseEncoder, documents: Sequence[str], settings: Logits
    ) -> None:
        """`teacher`: the model whose logits are learnt. The encoder's rows aren't tied to its embeddings."""
        self.settings, self.teacher = settings, teacher.requires_grad_(False)
        self.steps = settings.steps_for(len(documents))
        self.words = [words for words in map(str.split, documents) if words]
        active = torch.zeros(encoder.vocabulary_size, device=encoder.device)
        with torch.no_grad():
            for text in evenly(documents, LOOKED_AT):
                active += (teacher.weights(teacher.tokenize([text])) > 0).sum(dim=0)
        self.counts = RARE / len(active) + (1.0 - RARE) * active / active.sum().clamp_min(
            1.0
        )  # (V), 1 in all
        own, theirs = _rows(encoder), _rows(teacher)
        scaled = own.T * self.counts
        self.products = scaled @ own, scaled @ theirs, (theirs.T * self.counts) @ theirs  # A, C, B

    def batch(self, random: Generator) -> list[list[int]]:
        """Token ids of pieces of documents, each document as likely as any other."""
        texts = []
        for row in random.integers(0, len(self.words), self.settings.batch_size):
            words = self.words[int(row)]
            start = int(random.integers(max(1, len(words) - WORDS + 1)))
            texts.append(" ".join(words[start : start + WORDS]))
        return self.teacher.tokenize(texts)

    def terms(self, encoder: SparseEncoder, batch: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """`logits`: squared distance of all logits, as a share of the variance that the other model's have: ()."""
        own, theirs = [], []
        pad_id = encoder.tokenizer.pad_token_id or 0
        with encoder.looked_up(batch):
            for group in group_by_length([len(ids) for ids in batch], PADDED_TOKENS_A_PASS):
                ids, mask = (each.to(encoder.device) for each in pad([batch[row] for row in group], pad_id))
                own.append(encoder.hidden(ids, mask)[mask.bool()].float())
                with torch.no_grad():
                    theirs.append(self.teacher.hidden(ids, mask)[mask.bool()].float())
        states, wanted = _with_one(torch.cat(own)), _with_one(torch.cat(theirs))
        of_own, both, of_theirs = self.products
        distance = ((states @ of_own) * states).sum() - 2.0 * ((states @ both) * wanted).sum()
        distance = distance + ((wanted @ of_theirs) * wanted).sum()
        around = wanted - wanted.mean(dim=0)
        return {"logits": distance / ((around @ of_theirs) * around).sum().clamp_min(1e-6)}


def _rows(encoder: SparseEncoder) -> Tensor:
    """The decoder's rows with their biases behind: (V, H + 1)."""
    rows, bias = encoder.output_rows.detach(), encoder.output_bias
    last = rows.new_zeros(len(rows)) if bias is None else bias.detach()
    return torch.cat([rows, last[:, None]], dim=1)


def _with_one(states: Tensor) -> Tensor:
    """States (N, H) with a 1 behind each, which stands for the bias: (N, H + 1)."""
    return torch.cat([states, states.new_ones(len(states), 1)], dim=1)


def documents_of(corpora: Sequence[str]) -> list[Document]:
    """Documents of all corpora and general passages, their ids told apart; a sample of many."""
    documents = [
        Document(f"{number}-{document.document_id}", document.text, document.title)
        for number, corpus in enumerate(corpora, start=1)
        for document in read_documents(corpus)
    ]
    return sample([*documents, *(passage for passage, _ in background_pairs())], DOCUMENTS, 0)


def copy(
    documents: Sequence[Document], out: Path, *, encoder: str, model: str, effort: float, device: str
) -> None:
    """Teach the body of an encoder to weigh tokens as a SPLADE model does, and save it."""
    sparse, texts = SparseEncoder.load(model), [document.full_text for document in documents]
    beginnings = [" ".join(text.split()[:WORDS]) for text in evenly(texts, FITTED_ON)]
    grafted = graft_body(encoder, sparse, sparse.tokenize(beginnings)).to(device)
    steps = {stage: max(1, round(effort * number)) for stage, number in STEPS.items()}
    given = {"precision": fast_precision(torch.device(device)), "device": device}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        settings = Logits.model_validate({**given, "steps": steps["logits"]})
        train(grafted, TokenLogits(grafted, sparse.to(device), texts, settings), work / "logits")
        grafted.save(work / "model")
        write_documents(work / "text" / "corpus.jsonl", documents)
        own = {"batch_size": 32, "background": 0.1, "weights": {"old": 1.0, "new": 0.0, "extra": 1.0}}
        rate = {"learning_rate": at_width(RATE, grafted.width, WIDTH), "steps": steps["preserve"]}
        named: dict[str, str | Path] = {"corpus": work / "text", "before": model}
        settled = settings_for("preserve", overrides={**given, **own, **rate})
        carry_out_stage("preserve", str(work / "model"), named, Place(out), settled)


def main() -> None:
    """Make the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--encoder", default=SMALL, help="whose body it gets")
    parser.add_argument("--model", default="splade-tiny", help="SPLADE model that is copied")
    parser.add_argument("--effort", type=float, default=1.0, help="times the usual number of steps")
    parser.add_argument("--device", default="cpu")
    given = vars(parser.parse_args())
    copy(documents_of(given.pop("corpora")), **given)


if __name__ == "__main__":
    main()
