"""The request of an adaptation, and how it is known again when it goes on."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from sparse_adapt.collection.examples import CANDIDATE_FILES
from sparse_adapt.collection.glossary import DICTIONARY_FILES
from sparse_adapt.collection.readers import DOCUMENT_FILES, QUERY_FILES
from sparse_adapt.collection.sources import of_collection
from sparse_adapt.errors import ConfigError, InputError, unknown
from sparse_adapt.files.place import absolute
from sparse_adapt.files.steps import Source, of_path
from sparse_adapt.model.folder import of_model
from sparse_adapt.model.reading import Reading, choose_device
from sparse_adapt.pipeline.plan import first_error, merged, settings_for, settings_of
from sparse_adapt.pipeline.settings import WORDS, AdaptSettings
from sparse_adapt.settings import Settings
from sparse_adapt.stages.inputs import CANDIDATES, DICTIONARY, PAIRS, Input
from sparse_adapt.stages.table import every_stage, find_stage, stages_of_adapt
from sparse_adapt.teachers.settings import ENSEMBLE
from sparse_adapt.training.settings import Training

REQUEST_FILE = "request.json"
OF_READING = ("device",)  # overrides that count where nothing is trained, too
ADAPT_STAGES = (WORDS, *stages_of_adapt())  # in the order in which they are carried out
OPTIONS = AdaptSettings.options()  # of the adaptation itself, by its settings
OWN = {option: name for name, option in OPTIONS.items() if name != "seed"}
WITH_WORDS = ("extend", "preserve", "rank")  # that give mined words a token, where somebody asks for it
NEW_ROWS = (
    "extend",
    "preserve",
)  # where rows of new words are all that may learn, and nothing defines the words


class Named(NamedTuple):
    """What a request names: how it is read, for which inputs of stages, and whether it may be left out."""

    source: Callable[[str], Source]
    inputs: frozenset[str] = frozenset()
    may_lack: bool = True


def _file(names: Sequence[str], *inputs: Input[object]) -> Named:
    return Named(partial(of_collection, names=names), frozenset(each.key for each in inputs))


NAMED = {
    "corpus": _file(DOCUMENT_FILES)._replace(may_lack=False),
    "model": Named(of_model, may_lack=False),
    "teacher": Named(of_path, may_lack=False),
    "glossary": _file(DICTIONARY_FILES, DICTIONARY, CANDIDATES, PAIRS),
    "queries": _file(QUERY_FILES, CANDIDATES, PAIRS),
    "candidates": _file(CANDIDATE_FILES, CANDIDATES, PAIRS),
    "llm": Named(of_path),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Corpus and model, the files that take the place of what would be made, and settings.

    `overrides` are for every stage that trains, as on the command line of the stages; `of_stages` for one each, by
    its name.
    """

    corpus: str
    model: str
    glossary: str | None = None
    queries: str | None = None
    candidates: str | None = None
    teacher: str = ENSEMBLE
    llm: str | None = None
    settings: AdaptSettings = field(default_factory=AdaptSettings)
    overrides: Mapping[str, object] = field(default_factory=dict)
    of_stages: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """Everything as JSON holds it, with paths that mean the same anywhere."""
        named = {key: None if value is None else absolute(value) for key, value in self._named().items()}
        stored = {"overrides": dict(self.overrides), "of_stages": dict(self.of_stages)}
        return named | {"settings": self.settings.model_dump(mode="json")} | stored

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that teach, carried out where there is something to learn in them.

        A glossary is taught by `dictionary`. Where `dictionary` and `rank` are both named, ranking is learnt beside it
        (`ranking`). Without a glossary words get no token: collections without one ask in words that the base model
        knows.
        """
        named: set[str] = set(self.settings.stages)
        if self.ranking is not None:
            named.discard("rank")
        if self.glossary is not None and self._usual:
            named = {row.name for row in every_stage() if row.of_glossary}
        elif self.settings.frozen and self._usual:
            named = set(NEW_ROWS)
        if self.settings.frozen:
            named.discard("rank")
        return tuple(name for name in stages_of_adapt() if name in named)

    @property
    def ranking(self) -> "Request | None":
        """The adaptation beside a glossary's terms: ranking, without new terms.

        None where `rank` isn't named beside `dictionary`, and where old rows are to stay as they are.
        """
        named = {"dictionary", "rank"} <= set(self.settings.stages)
        if self.glossary is None or not named or self.settings.frozen:
            return None
        stages = tuple(name for name in self.settings.stages if name in (WORDS, "rank"))
        return replace(self, glossary=None, settings=self.settings.model_copy(update={"stages": stages}))

    @property
    def _usual(self) -> bool:
        """Whether no stages are named."""
        return self.settings.stages == AdaptSettings().stages

    @property
    def all_stages(self) -> tuple[str, ...]:
        """The stages of the ranking beside them, if there is one, and then its own."""
        return (*(() if self.ranking is None else self.ranking.stages), *self.stages)

    def learns_from(self, *inputs: Input[Any]) -> bool:
        """Whether a stage reads one of these inputs."""
        return any({*inputs} & {*find_stage(name).reads} for name in self.all_stages)

    @property
    def adds_words(self) -> bool:
        """Whether the adapted model has exact words."""
        return WORDS in self.settings.stages and not self.settings.frozen

    @property
    def extends(self) -> bool:
        """Whether words get a token."""
        return "extend" in self.stages

    def settings_of(self, stage: str) -> Training:
        """The settings of a stage that trains."""
        settled = {"seed": self.settings.seed, "max_tokens": self.settings.longest}
        of_stage = self.of_stages.get(stage, {})
        frozen = {"train": "new"} if self.settings.frozen else {}
        return settings_for(stage, "default", {**settled, **self.overrides, **of_stage, **frozen})

    def own_settings(self, stage: str) -> Settings:
        """The settings of a stage that trains nothing."""
        return settings_of(stage, "default", self.of_stages.get(stage, {}))

    @property
    def reading(self) -> Reading:
        """How documents are read wherever they are encoded, and on which device, by the name that was given."""
        return replace(self.settings.reading, device=str(self.overrides.get("device", "auto")))

    @property
    def device(self) -> str:
        """Where texts are encoded: where the stages train. Raises ConfigError for a device that isn't there."""
        return choose_device(self.reading.device)

    def command(self) -> str:
        """The command that asks for the same, files by their names alone; settings of stages aside."""
        named: dict[str, object] = {
            key: value for key, value in self._named().items() if key not in ("corpus", "teacher")
        }
        named |= {"teacher": None if self.teacher == ENSEMBLE else self.teacher}
        default = AdaptSettings()
        own, usual = self.settings.model_dump(), default.model_dump()
        named |= {
            key: own[key]
            for key in OWN.values()
            if isinstance(own[key], str | int) and own[key] != usual[key]
        }
        if self.settings.seed != default.seed:
            named["seed"] = self.settings.seed
        if self.settings.stages != default.stages:
            named["stages"] = ",".join(self.settings.stages)
        words = ["sparse-adapt", "adapt", _bare(self.corpus)]
        for key, value in named.items():
            flag = f"--{OPTIONS.get(key, key).replace('_', '-')}"
            words += [] if value is None else [flag] if value is True else [flag, _bare(str(value))]
        return shlex.join([*words, "-o", "adapted"])

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Request":
        """The request that `published` was made of."""
        settings = AdaptSettings.model_validate_json(json.dumps(plain["settings"]))
        return cls(**{**plain, "settings": settings})

    def sources(self) -> dict[str, Source | None]:
        """What each file or model that is named reads, by its word, each hashed once; None for what isn't named."""
        named = self._named().items()
        return {key: None if value is None else NAMED[key].source(value).once() for key, value in named}

    def _named(self) -> dict[str, str | None]:
        """Every file and model by its word, whether it is named or not."""
        return {key: getattr(self, key) for key in NAMED}

    def check(self) -> None:
        """Raise, before anything is read, InputError for a missing file, ConfigError for an idle one or odd stages."""
        if self.extends and self.own_settings("extend").model_dump()["pieces"] == "beside":
            for name in self.stages:
                if "beside" in find_stage(name).refuses:
                    raise ConfigError(
                        f"the stage {name} knows a term by its token alone, and extend is to leave terms beside their "
                        "pieces; leave out one of the two"
                    )
        self._check_idle_settings()
        for key, path in self._named().items():
            if NAMED[key].inputs and path is not None and not Path(path).exists():
                raise InputError(path, "no such file; check the path")
        self.check_use()

    def _check_idle_settings(self) -> None:
        """Raise ConfigError for settings of stages that aren't carried out."""
        idle = next((name for name in self.of_stages if name not in self.all_stages), None)
        if idle is not None:
            raise ConfigError(f"{idle}: settings of a stage that isn't carried out; name it among --stages")
        key = next((key for key in self.overrides if key not in OF_READING), None)
        if key is not None and not any(find_stage(name).trains for name in self.all_stages):
            raise ConfigError(
                f"{key}: a setting of stages that train, and none does; name one, as in --stages {WORDS},rank"
            )

    def check_use(self) -> None:
        """Raise ConfigError for a file that is given and that no stage reads, a teacher's scores among them."""
        if not self.all_stages and Path(self.teacher).is_file():
            raise ConfigError(
                f"--teacher {self.teacher}: no stage reads it; leave it out, or name --stages {WORDS},rank"
            )
        read = {each.key for name in self.all_stages for each in find_stage(name).needs}
        for name, file in self._named().items():
            keys = NAMED[name].inputs
            if keys and file is not None and not keys & read:
                readers = ", ".join(
                    stage
                    for stage in stages_of_adapt()
                    if keys & {each.key for each in find_stage(stage).needs}
                )
                raise ConfigError(
                    f"--{name} {file}: none of the stages {', '.join(self.all_stages or (WORDS,))} reads it; "
                    f"leave it out, or have one of {readers} among --stages"
                )


def _bare(source: str) -> str:
    """A path of this machine by its last part; a name as it is."""
    return Path(source).name if Path(source).exists() else source


def begun(folder: Path) -> Request | None:
    """The request of an adaptation in a folder, whether it is whole or unfinished; None where there is none.

    Raises InputError for a file that isn't such a request.
    """
    places = (folder.with_name(f"{folder.name}.partial") / REQUEST_FILE, folder / REQUEST_FILE)
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return None
    return read_request(path)


def read_request(path: Path) -> Request:
    """The request that a file holds. Raises InputError for one that isn't such a request."""
    try:
        plain = json.loads(path.read_bytes())
        request = Request.of_plain(plain)
        if not all(isinstance(plain[key], str | None if NAMED[key].may_lack else str) for key in NAMED):
            raise TypeError("a name that is none")
        if not all(isinstance(each, dict) for each in (request.overrides, request.of_stages)):
            raise TypeError("settings that are none")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(path, "not the request of an adaptation; pass --overwrite to start again") from error
    return request


def chosen_settings(before: Request | None, settings: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The settings of a request: those of before, and what is named now on top.

    Raises ConfigError for a stage or a setting that there isn't, and for a value that can't be.
    """
    of_stages = {} if before is None else dict(before.of_stages)
    overrides = {} if before is None else dict(before.overrides)
    own = {} if seed is None else AdaptSettings.seeds(seed)
    for name, value in settings.items():
        if name in OWN:
            own = merged(own, {} if value is None else {OWN[name]: value})
        elif name in stages_of_adapt():
            of_stages[name] = value
        else:
            overrides[name] = value
    chosen = _settings(AdaptSettings() if before is None else before.settings, own)
    trained = {name for name in chosen.stages if name != WORDS and find_stage(name).trains} or {"rank"}
    for stage in trained | {name for name in of_stages if find_stage(name).trains}:
        settings_for(stage, "default", merged(overrides, of_stages.get(stage, {})))
    for name in of_stages:
        if not find_stage(name).trains:
            settings_of(name, "default", of_stages[name])
    return {"settings": chosen, "overrides": overrides, "of_stages": of_stages}


def _settings(before: AdaptSettings, changed: Mapping[str, object]) -> AdaptSettings:
    """The adaptation's own settings, stages in the order that they have."""
    content: dict[str, Any] = merged(before.model_dump(), changed)
    for name in content["stages"]:
        if name not in ADAPT_STAGES:
            raise ConfigError(unknown("stage", name, ADAPT_STAGES))
    content["stages"] = tuple(name for name in ADAPT_STAGES if name in content["stages"])
    try:
        return AdaptSettings.model_validate(content)
    except ValidationError as error:
        raise ConfigError(f"adapt: {first_error(error, AdaptSettings)[1]}") from error
