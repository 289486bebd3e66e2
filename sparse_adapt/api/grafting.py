"""A larger base model: a SPLADE model made of a dense encoder and a smaller SPLADE model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparse_adapt.api.adapting import AdaptBars
from sparse_adapt.api.models import Model, load
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.place import Place
from sparse_adapt.model.dense import SMALL
from sparse_adapt.pipeline.graft import OF_STAGES, GraftRequest, GraftSettings
from sparse_adapt.pipeline.graft import graft as carry_out
from sparse_adapt.pipeline.plan import BASE_MODEL, first_error
from sparse_adapt.report.progress import is_watched


def graft(
    corpora: Sequence[str | Path],
    out: str | Path,
    *,
    encoder: str = SMALL,
    sparse: str = BASE_MODEL,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **settings: Any,  # noqa: ANN401 - a graft's own, and those of its stages, checked by their own types
) -> Model:
    """Make a SPLADE model of a dense encoder and a smaller SPLADE model with the same tokens, from text without labels.

    corpora: what is learnt from, beside the general passages that come with the package; the more kinds of text, the
    better. out: the folder of the run, with the model in `out`/model.
    encoder: whose body the model gets: a folder, an installed package or `hub:owner/name`.
    sparse: the SPLADE model that it learns to be like; by default splade-tiny.
    resume: whether a graft that was stopped goes on.
    settings: a graft's own (`effort`, `documents`, `ranked`, `queries`, `seed`), and those of one stage under its name
    (`logits={"steps": 100}`; logits, behaviour and imitate).

    Raises ConfigError for two models whose tokens differ and for a setting that there isn't, InputError for a corpus
    that can't be read, OutputError for a folder that is taken.

    >>> import sparse_adapt as sa
    >>> sa.graft(["gatrocraptic"], "grafted", effort=0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sparse_adapt.errors.ConfigError: graft: effort should be greater than 0 (found: 0)
    """
    of_stages = {name: value for name, value in settings.items() if name in OF_STAGES}
    own = {name: value for name, value in settings.items() if name not in OF_STAGES}
    for name in own:
        if name not in GraftSettings.model_fields:
            raise ConfigError(f"graft: {unknown('setting', name, (*GraftSettings.model_fields, *OF_STAGES))}")
    try:
        chosen = GraftSettings.model_validate(own)
    except ValidationError as error:
        raise ConfigError(f"graft: {first_error(error, GraftSettings)[1]}") from error
    request = GraftRequest(
        corpora=tuple(map(str, corpora)), encoder=encoder, sparse=sparse, settings=chosen, of_stages=of_stages
    )
    with AdaptBars(shown=is_watched() if progress is None else progress) as bars:
        done = carry_out(request, Place(Path(out), overwrite, resume), bars)
    return load(done.model)
