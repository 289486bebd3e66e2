"""A model folder or a term pack, put on the Hub: `push`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import a_pack_or_model
from sparse_adapt.api.following import line
from sparse_adapt.api.options import Option, declared
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.registry import registry
from sparse_adapt.report.messages import say
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Row

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike


def a_repository(name: str) -> None:
    """Raise ConfigError for what can't be the name of a repository on the Hub."""
    _hub_id(name)


@declared
def push(
    source: Annotated[
        "ModelLike",
        Option(
            "A model folder, or the file of a term pack.",
            metavar="MODEL_OR_FILE",
            place=True,
            check=a_pack_or_model,
        ),
    ],
    repository: Annotated[
        str, Option("Where to, on the Hub.", metavar="OWNER/NAME", place=True, check=a_repository)
    ],
    *,
    private: Annotated[bool, Option("Only its owner sees the repository that is made.")] = False,
    overwrite: Annotated[
        bool, Option("Replace the files of a repository that is there; earlier ones stay in its history.")
    ] = False,
) -> Result:
    """Put a model or a term pack on the Hub.

    From there `hub:owner/name` loads it. Its files and their size are listed first: what loading reads, by a list of
    names, and the card. Any other file stays here, records of how the model was made too, for they name folders of this
    machine; a link that leads out of the model's folder is refused. The token is that of `hf auth login`,
    or HF_TOKEN.

    The result has the `repository` as `hub:owner/name`, and the bytes of each of its `files`.

    Raises ConfigError without a token; OutputError for a repository that is there, where the Hub refuses, and where
    the connection breaks: then nothing was pushed.

    >>> import sparse_adapt as sa
    >>> sa.push("adapted/model", "my-team/our-words", private=True)  # doctest: +SKIP
    """
    from sparse_adapt.model.hub import ON_THE_HUB, check_pushable
    from sparse_adapt.model.hub import push as push_files

    hub_id = _hub_id(repository)
    place = str(source) if isinstance(source, str | Path) else source.saved_at()
    is_pack = Path(place).is_file()
    of_kind = registry().find("readers.packs", ".pack") if is_pack else _files_of_model
    files: dict[str, Path | bytes] = of_kind(Path(place))
    files_there = check_pushable(hub_id, private, overwrite)
    sizes = {
        name: len(each) if isinstance(each, bytes) else each.stat().st_size for name, each in files.items()
    }
    say(f"pushing {_counted(sizes)} to {'a private' if private else 'the'} repository {hub_id}:")
    for name, size in sizes.items():
        say(f"  {name}  {_size(size)}")
    push_files(hub_id, files, files_there, private)
    repository = ON_THE_HUB + hub_id
    headline = f"{repository}: {_counted(sizes)}"
    looked_at = line("packs", repository) if is_pack else line("diagnose", "--model", repository)
    rows: list[Row] = [{"file": name, "bytes": size} for name, size in sizes.items()]
    data = {"repository": repository, "files": sizes}
    return Result(headline, data, [f"pushed {headline}"], then=[looked_at], rows=rows)


def _hub_id(name: str) -> str:
    """The id of a repository, with or without `hub:` before it. Raises ConfigError for what is none."""
    from sparse_adapt.model.hub import HUB_ID, ON_THE_HUB

    hub_id = name.removeprefix(ON_THE_HUB)
    if not HUB_ID.fullmatch(hub_id):
        raise ConfigError(f"{name}: is no name of a repository; give OWNER/NAME")
    return hub_id


def _files_of_model(source: str | Path) -> dict[str, Path | bytes]:
    """What loading reads of a model's folder, and its card. Raises InputError for a folder that holds no model."""
    from sparse_adapt.model.folder import ModelFolder
    from sparse_adapt.model.hub import LOADED, PARTS
    from sparse_adapt.model.layout import folders_read

    folder = ModelFolder.of(source).path
    files: dict[str, Path | bytes] = {}
    for place in folders_read(folder, source):
        for path in sorted(each for name in (*LOADED, PARTS) for each in place.glob(name) if each.is_file()):
            files[path.relative_to(folder).as_posix()] = _lying_in(folder, path)
    if not {"config.json", "modules.json"} & files.keys():
        advice = (
            f"did you mean {folder / 'model'}?" if (folder / "model").is_dir() else "give a model's folder"
        )
        raise InputError(source, f"holds no model; {advice}")
    return files


def _lying_in(folder: Path, path: Path) -> Path:
    """A file of a model, which lies in its folder. Raises InputError for a link that leads out.

    In the Hub's own cache a folder's files are links to its neighbours, the blobs of the same repository.
    """
    snapshot = folder.parent.name == "snapshots" and (folder.parents[1] / "blobs").is_dir()
    home = folder.parents[1] if snapshot else folder
    if not path.resolve().is_relative_to(home.resolve()):
        raise InputError(path, "is a link that leads out of the model's folder; put the file itself there")
    return path


def _counted(sizes: Mapping[str, int]) -> str:
    return f"{len(sizes):,} files, {_size(sum(sizes.values()))}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"
