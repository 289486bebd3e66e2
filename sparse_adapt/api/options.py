"""How an option is declared: once, in the signature of a public function.

    def polish(model: SomeModel, *, shine: Annotated[float, Option("How much it shines.", ge=0)] = 2.0) -> Result: ...

The command is made of this signature (`cli.commands`), and so are its help and its row in the page of commands. A
parameter without an `Option` belongs to Python alone. A function that is `declared` checks its arguments by the same
signature, so a Python call and a command refuse the same values, and its docstring lists their helps.

Nothing heavy loads with a signature: modules of `api` import what is heavy inside their functions, and name its types
in quotes. A type in quotes stands for whatever Python takes; a command line gives a string.
"""

import os
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature, unwrap
from numbers import Integral, Real
from pathlib import Path
from pkgutil import resolve_name
from textwrap import fill
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from sparse_adapt.api.checks import (
    a_corpus,
    a_device,
    a_file_or_folder,
    a_folder,
    a_model,
    a_server,
    a_teacher,
    some_queries,
    some_words,
)
from sparse_adapt.errors import ConfigError, OutputError, unknown
from sparse_adapt.files.writing import reason_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sparse_adapt.api.inputs import InputLike
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.arguments import DefinitionsLike, DocumentsLike, QueriesLike
    from sparse_adapt.collection.columns import ColumnsLike

WIDTH = 110  # of the docstring of a function
MISSPELT = 0.85  # likeness to a parameter's name, from which on a setting is taken for it
OF_COMMANDS = r" Also as --\w+\.|,? with commas between them| May be given \w+( times)?\."  # in helps
P = ParamSpec("P")
T = TypeVar("T")
KINDS: Mapping[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a string"),
    Path: (str | Path, "a path"),
}  # of values: what Python takes, and its name
ACCEPTED: Mapping[str, tuple[str, str]] = {
    "ModelLike": ("sparse_adapt.api.models", "a path, a name or a Model"),
    "InputLike": ("sparse_adapt.api.inputs", "a path, or records in a list"),
    "TermsLike": ("sparse_adapt.terms.mining", "a path, or words in a list or by category"),
    **{
        f"{kind}Like": (
            "sparse_adapt.collection.arguments",
            f"a path, or {kind.lower()} in a list or a dictionary",
        )
        for kind in ("Documents", "Queries", "Judgements", "Definitions", "Columns")
    },
}  # types in quotes: their modules, and what they stand for


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of a parameter beside its name, type and default.

    `flag`: the option of the command, where it isn't called as the parameter; a short one may come first ("-o --out").
    `place`: given by its place in the command line. `check`: raises for a name that can't be right. `shown`: how help
    words the default. `commas`: several values in one word, with commas between them. `many`: several values
    of a type in quotes. `panel`: of the help.
    """

    help: str
    flag: str = ""
    metavar: str = ""
    place: bool = False
    check: Callable[[str], object] | None = None
    choices: tuple[str, ...] = ()
    ge: float | None = None
    le: float | None = None
    shown: str = ""
    commas: bool = False
    many: bool = False
    panel: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a command passes for a parameter of which it has no option."""

    value: object


@dataclass(frozen=True, slots=True)
class Options:
    """The options that a parameter such as `**reading` takes, by their names."""

    named: Mapping[str, Option]


@dataclass(frozen=True, slots=True)
class SettingsOf:
    """The keys of a table of settings that a parameter such as `**settings` takes: all but some, or those named.

    `place`: module and class, which load when the command is made.
    """

    place: str
    names: tuple[str, ...] = ()
    panel: str = ""
    without: tuple[str, ...] = ()
    of_stages: bool = False  # whether each stage has defaults of its own

    def load(self) -> "type[BaseModel]":
        """The table."""
        kind: type[BaseModel] = resolve_name(self.place)
        return kind


class Declared(NamedTuple):
    """A parameter of a function: the type of a value, whether that is closed, and what is known of it.

    `closed`: whether values of other types are refused. `accepted`: types in quotes, for which a name stands.
    """

    name: str
    kind: type
    option: Option
    default: Any = Parameter.empty
    closed: bool = True
    optional: bool = False
    many: bool = False
    accepted: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The option's own name, as a message gives it."""
        if self.option.place:
            return self.option.metavar or self.name.upper()
        return (self.option.flag or f"--{self.name.replace('_', '-')}").split()[-1]

    def check(self, value: object, called: str) -> None:
        """Raise the project's errors for a value that can't be; `called`: what the message calls the option."""
        if value is None and (self.optional or self.default is None):
            return
        for each in self._each(value):
            self._check_one(each, called)

    def _each(self, value: object) -> Sequence[object]:
        if self.many and not isinstance(value, str) and isinstance(value, Sequence):
            return value
        return [value]

    def _check_one(self, value: object, called: str) -> None:
        option = self.option
        kind, word = KINDS[self.kind] if self.closed else _kind_of(self.accepted, value)
        if not isinstance(value, kind) or (isinstance(value, bool) and self.kind is not bool):
            raise ConfigError(f"{called} should be {word} (found: {reprlib.repr(value)})")
        if isinstance(value, str | Path) and not _is_writable(str(value)):
            raise ConfigError(f"{called} {str(value)!r} isn't Unicode; check how it was read")
        if option.choices and value not in option.choices:
            raise ConfigError(unknown(called, str(value), option.choices))
        if isinstance(value, int | float) and not isinstance(value, bool):
            for bound, word in ((option.ge, "greater"), (option.le, "less")):
                within = bound is None or (value >= bound if word == "greater" else value <= bound)
                if not within:
                    raise ConfigError(f"{called} should be {word} than or equal to {bound} (found: {value})")
        if option.check is not None and isinstance(value, str | Path):
            try:
                option.check(str(value))
            except OSError as error:  # a path that the system can't look at, such as one that is too long
                raise ConfigError(
                    f"{called} {reprlib.repr(str(value))}: {error.strerror or error}; check the path"
                ) from error


def _extras(annotation: object) -> tuple[object, ...]:
    """What is known of a parameter beside its type."""
    return getattr(annotation, "__metadata__", ())


def signature_of(function: Callable[..., object]) -> Signature:
    """The signature as it is written, with all that is known of each parameter."""
    return signature(unwrap(function))


def readable(written: Signature) -> Signature:
    """The signature as a person reads it: names, types and defaults."""
    return written.replace(
        parameters=[each.replace(annotation=_plain(each.annotation)) for each in written.parameters.values()]
    )


def _plain(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """A type without what is known of it beside; one in quotes as it is written."""
    kind = annotation.__origin__ if _extras(annotation) else annotation
    return kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind


def options_of(function: Callable[..., object]) -> dict[str, Declared]:
    """The options that a function declares, by its parameters, those of `**reading` and the like among them."""
    options: dict[str, Declared] = {}
    for each in signature_of(function).parameters.values():
        for extra in _extras(each.annotation):
            if isinstance(extra, Option):
                options[each.name] = _declared(each.name, each.annotation.__origin__, extra, each.default)
            elif isinstance(extra, Options):
                kind = each.annotation.__origin__
                options |= {name: _declared(name, kind, option, None) for name, option in extra.named.items()}
    return options


def settings_of(function: Callable[..., object]) -> list[SettingsOf]:
    """The tables of settings whose keys a function takes."""
    annotations = [each.annotation for each in signature_of(function).parameters.values()]
    options = [each for kind in annotations for each in _extras(kind)]
    return [each for each in options if isinstance(each, SettingsOf)]


def fixed_of(function: Callable[..., object]) -> dict[str, object]:
    """What a command passes for parameters of which it has no option."""
    return {
        each.name: extra.value
        for each in signature_of(function).parameters.values()
        for extra in _extras(each.annotation)
        if isinstance(extra, Fixed)
    }


def declared(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose arguments are checked by its signature first, and whose system errors become ours."""
    own, options = signature(function), {**_unasked(function), **options_of(function)}
    rest = next((each.name for each in own.parameters.values() if each.kind is Parameter.VAR_KEYWORD), "")
    extras = _extras(own.parameters[rest].annotation) if rest else ()
    closed = any(isinstance(each, Options) for each in extras)

    @wraps(function)
    def checked(*positional: P.args, **named: P.kwargs) -> T:
        for name, value in named.items():
            if isinstance(value, str) and name in options and options[name].option.commas:
                named[name] = value.split(",")  # as on the command line
        bound = own.bind(*positional, **named).arguments
        for name, value in {**bound, **bound.get(rest, {})}.items():
            if name in options:
                options[name].check(value, name)
            elif closed and name not in own.parameters:
                raise ConfigError(unknown("option", name, tuple(options)))
            elif name not in own.parameters and get_close_matches(name, own.parameters, 1, MISSPELT):
                raise ConfigError(unknown("option", name, tuple(own.parameters)))
        try:
            return function(*positional, **named)
        except OSError as error:
            raise OutputError(f"{reason_of(error)}; see to the disk and run it again") from error

    checked.__signature__ = readable(own)  # type: ignore[attr-defined]
    checked.__doc__ = _documented(function)
    return checked


def _documented(function: Callable[..., object]) -> str:
    """The docstring with a list of the options before its example: their helps, in the words of Python."""
    written, lines = cleandoc(function.__doc__ or ""), list[str]()
    for name, each in options_of(function).items():
        shown = f" By default {each.option.shown}." if each.option.shown else ""
        memory = "".join(
            ACCEPTED[kind][1].partition(", or ")[2] for kind in each.accepted if kind in ACCEPTED
        )
        text = re.sub(OF_COMMANDS, "", each.option.help) + (f" Or {memory}." if memory else "") + shown
        text = re.sub(r"--([a-z][a-z-]*)", lambda flag: f"`{flag[1].replace('-', '_')}`", text)
        lines.append(fill(f"{name}: {text}", WIDTH, initial_indent="- ", subsequent_indent="  "))
    start = written.find("\n\n>>> ")
    start = len(written) if start < 0 else start
    return f"{written[:start]}\n\n{chr(10).join(lines)}{written[start:]}" if lines else written


def _unasked(function: Callable[..., object]) -> dict[str, Declared]:
    """The parameters that belong to Python alone, as far as their types say what they take."""
    options: dict[str, Declared] = {}
    for each in signature(function).parameters.values():
        kind: Any = each.annotation
        kind = kind.__origin__ if _extras(kind) else kind
        kind = ForwardRef(kind) if isinstance(kind, str) else kind
        option = _declared(each.name, kind, Option(""), each.default)
        is_one = each.kind is not Parameter.VAR_KEYWORD and not option.many
        if is_one and (option.accepted or (option.closed and option.kind in KINDS)):
            options[each.name] = option
    return options


def _kind_of(names: Sequence[str], value: object) -> tuple[Any, str]:
    """The types that some names stand for, and what to call them. Nothing heavy loads for a path or a name."""
    if isinstance(value, str | Path):
        return (str, Path), ""
    aliases = [
        resolve_name(f"{ACCEPTED[name][0] if name in ACCEPTED else 'builtins'}:{name}") for name in names
    ]
    parts = [part for alias in aliases for part in get_args(alias) or (alias,)]
    words = [ACCEPTED[name][1] for name in names if name in ACCEPTED]
    return tuple(get_origin(part) or part for part in parts) or object, " or ".join(words)


def _is_writable(text: str) -> bool:
    """Whether a text can be the name of a file."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _declared(name: str, annotation: Any, option: Option, default: object) -> Declared:  # noqa: ANN401 - a type
    """A parameter by its type: one of KINDS or None, a choice of names, several of a kind, or a type in quotes."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    optional = NoneType in parts or any("| None" in each.__forward_arg__ for each in _quoted(parts))
    kinds = [each for each in parts if each is not NoneType]
    if _quoted(parts):
        open_kind = bool if isinstance(default, bool) else str
        names = [part.strip() for each in _quoted(parts) for part in each.__forward_arg__.split("|")]
        accepted = tuple(each for each in names if each in ACCEPTED or each == "bool")
        return Declared(name, open_kind, option, default, False, optional, option.many, accepted)
    many = next((get_args(each)[0] for each in kinds if get_origin(each) in (list, Sequence, tuple)), None)
    if many is not None:
        option = _choosing(option, get_args(many)) if get_origin(many) is Literal else option
        kind: type = Path if Path in get_args(many) else many if many in KINDS else str
        return Declared(name, kind, option, default, optional=optional, many=True)
    if get_origin(kinds[0]) is Literal:
        return Declared(name, str, _choosing(option, get_args(kinds[0])), default, optional=optional)
    return Declared(name, Path if Path in kinds else kinds[0], option, default, optional=optional)


def _quoted(parts: Sequence[object]) -> list[ForwardRef]:
    return [each for each in parts if isinstance(each, ForwardRef)]


def _choosing(option: Option, choices: tuple[str, ...]) -> Option:
    return replace(option, choices=choices)


# -- options that several functions share ---------------------------------------------------------

CORPUS_HELP = "A BEIR folder or its corpus.jsonl, a JSONL or TSV file, a bundled name or an ir_datasets id."
MODEL_HELP = "A model folder, the alias splade-tiny or hub:owner/name."
COLLECTION_HELP = (
    "Documents, queries, judgements: a BEIR folder, a bundled name, an ir_datasets id. Also as --corpus."
)
READING = "How much of a text is read"
WITH = "With "  # begins the name of a panel of help whose options count only beside the one that it names


def model_option(help: str = MODEL_HELP, flag: str = "") -> Option:
    """A model that a function reads."""
    return Option(help, flag, "MODEL", check=a_model)


def corpus_option(help: str = CORPUS_HELP, flag: str = "") -> Option:
    """Documents that a function reads."""
    return Option(help, flag, "CORPUS", check=a_corpus)


def out_option(help: str, metavar: str = "FILE", shown: str = "") -> Option:
    """Where a function writes."""
    return Option(help, "-o --out", metavar, shown=shown)


BASELINE = model_option(f"The model to compare with. {MODEL_HELP}")
QUERIES = Option("Queries: a BEIR folder, JSONL, TSV or TREC topics.", metavar="FILE", check=some_queries)
CORPUS_PLACE = Option(f"{CORPUS_HELP} Also as --corpus.", metavar="CORPUS", place=True, check=a_corpus)
MODEL_PLACE = Option(f"{MODEL_HELP} Also as --model.", metavar="MODEL", place=True, check=a_model)

Model = Annotated["ModelLike", model_option()]
ModelAtPlace = Annotated["ModelLike", MODEL_PLACE]
SomeModel = Annotated["ModelLike | None", model_option()]
LatestModel = Annotated["ModelLike | None", model_option(f"{MODEL_HELP} By default that of the latest run.")]
Baseline = Annotated["ModelLike | None", BASELINE]
Documents = Annotated["DocumentsLike", corpus_option()]
CorpusAtPlace = Annotated["DocumentsLike", CORPUS_PLACE]
SomeCorpus = Annotated["DocumentsLike | None", corpus_option()]
LatestCorpus = Annotated[
    "DocumentsLike | None", corpus_option(f"{CORPUS_HELP} By default what the model is for.")
]
Collection = Annotated["DocumentsLike", Option(COLLECTION_HELP, metavar="DIR", check=a_corpus)]
Vectors = Annotated[
    str | Path | None,
    Option("Vectors that `encode` wrote, instead of a corpus.", metavar="DIR", check=a_folder),
]
Queries = Annotated["QueriesLike", QUERIES]
SomeQueries = Annotated["QueriesLike | None", QUERIES]
Words = Annotated[str, Option("What to look for, in words.", metavar="QUERY", place=True, check=some_words)]
Glossary = Annotated[
    "DefinitionsLike | None",
    Option(
        "Terms and their definitions: dictionary.jsonl, a table, TBX, SKOS or OBO; phrases, acronyms and references as "
        "they are. Queries that mean a word which the model lacks get it; `adapt` also teaches such words.",
        metavar="FILE",
        check=a_file_or_folder,
    ),
]
Columns = Annotated[
    "ColumnsLike",
    Option(
        "Columns of a table, or keys of JSON, as FIELD=COLUMN, with commas between them: of documents id, title and "
        "text, of queries query_id and query, of a glossary term, definition, expansion and examples. COLUMN is a "
        "heading, or a number in a table without headings. Usual headings are known, in several languages.",
        metavar="FIELD=COLUMN",
        commas=True,
        many=True,
        shown="by the headings",
    ),
]
CandidatesGiven = Annotated[
    "InputLike | None",
    Option(
        "Queries with scored documents (candidates.jsonl), to learn from instead of synthetic ones.",
        metavar="FILE",
        check=a_file_or_folder,
    ),
]
TEACHER = Option(
    "Who scores documents: ensemble (base model, BM25 and a dense model together), bm25 (quick: without the dense "
    "model), a dense model, a cross-encoder, or a file of scores (candidates.jsonl or a TREC run).",
    metavar="NAME_OR_PATH",
    check=a_teacher,
)
Teacher = Annotated[str, TEACHER]
LLM = Option(
    "A model that writes, behind any server of OpenAI's chat protocol (vLLM, llama.cpp, Ollama, ...): "
    "http://localhost:8000/v1#SmolLM2. Texts of the corpus are sent there; what and how much is said first. "
    "OPENAI_API_KEY may hold a key.",
    metavar="URL#MODEL",
    check=a_server,
)
Llm = Annotated[
    str | None, replace(LLM, help=f"{LLM.help} It writes queries that say a term, and that mean one.")
]
Split = Annotated[str, Option("Which judgements: those of qrels/NAME.tsv.", metavar="NAME")]
Out = Annotated[str | Path, out_option("Folder to write.", "DIR")]
Overwrite = Annotated[bool, Option("Replace what is there, once the new result is complete.")]
Resume = Annotated[bool, Option("Go on where an unfinished run stopped.")]
Device = Annotated[
    str, Option("Where the model runs: auto, cpu, cuda or mps.", metavar="NAME", check=a_device)
]
Engine = Annotated[
    str,
    Option(
        "Where texts are encoded: local, or ray for all machines of a Ray cluster.",
        metavar="NAME",
        choices=("local", "ray"),
    ),
]
Workers = Annotated[
    int | None,
    Option("Parts of the work that Ray does at once.", ge=1, shown="one for each processor"),
]
OnCpu = Annotated[str, Fixed("cpu")]  # what is looked at once is read on a CPU: the same figures everywhere
Html = Annotated[
    str | None, Option("Write a page with pictures, too. It replaces an earlier one.", metavar="FILE")
]
General = Annotated[
    str | None,
    Option(
        "Measure also what the model keeps of what it knew: general questions, alone and among the collection's "
        "documents, false activations, and known items. `general` names the questions that come with the package; any "
        "other collection with judgements serves as well.",
        metavar="DIR",
    ),
]
Scale = Annotated[
    float | None, Option("What weights are multiplied by before they become whole numbers.", shown="100")
]
Seed = Annotated[
    int, Option("Seed of every random draw. The same seed gives the same result on a CPU.", ge=0)
]
READING_OPTIONS = Options(
    {
        "max_tokens": Option(
            "Tokens of a text that are read; the rest is cut off.",
            metavar="N",
            ge=8,
            shown="as many as the model says",
            panel=READING,
        ),
        "windows": Option(
            "Read all of a long document, in windows of N tokens; each token has its largest weight of all. 0: none.",
            metavar="N",
            ge=0,
            shown="as the model says",
            panel=READING,
        ),
        "overlap": Option(
            "Tokens of a window that the next one repeats.", metavar="M", ge=0, shown="32", panel=READING
        ),
    }
)
Reads = Annotated[int | None, READING_OPTIONS]
TRAINING = SettingsOf(
    "sparse_adapt.training.settings:Training",
    ("seed", "learning_rate", "epochs", "batch_size", "device", "precision", "memory", "tensorboard"),
    "Training",
    of_stages=True,
)
