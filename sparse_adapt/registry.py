"""The registry: what plug-ins add to the core, which imports none of them.

A plug-in is an entry point of the group `sparse_adapt.plugins` in some package's `pyproject.toml`, and a `Plugin`:

    [project.entry-points."sparse_adapt.plugins"]
    mails = "my_package:PLUGIN"

The plug-ins of this package, in `sparse_adapt/plugins`, are found in the same way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, NamedTuple

from sparse_adapt.errors import ConfigError, MissingPluginError, first_line

GROUP = "sparse_adapt.plugins"


class Command(NamedTuple):
    """A command under its name, made of a function that is named as `module:function`.

    panel: the heading of the help that the command stands under.
    """

    name: str
    place: str
    panel: str = ""

    @property
    def function(self) -> Callable[..., object]:
        """The function, whose module loads now: nothing heavy with it."""
        function: Callable[..., object] = resolve_name(self.place)
        return function


class StageRow(NamedTuple):
    """A stage's name, the place of its `Stage`, what it does, and where it is carried out.

    usual: the presets under which a run that names no stages has the stage; in_adapt: whether `adapt` makes its inputs;
    of_glossary: whether `adapt` carries it out where a glossary is given; without_terms: whether it has something to
    teach where there is no new term; is_research: whether it is beside the main path; after: the stage that a plug-in's
    stage follows.
    """

    name: str
    place: str
    summary: str
    usual: tuple[str, ...] = ()
    in_adapt: bool = False
    of_glossary: bool = False
    without_terms: bool = False
    is_research: bool = False
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What a plug-in adds. An object is named as `module:name`, and its module loads when the object is used.

    commands: of the command line, each also a function of `import sparse_adapt`. stages: rows of `stages.table`.
    readers: of `documents`, `queries`, `entries`, `texts` and `tables` by the end of a file's name, of `exports` by
    their format, and of `indexes`. writers: of texts that a language model writes. engines: rows of
    `plugins.engines.formats`. renderers: of pages. clusters: of machines that read texts. tasks: that stages of the
    core set dense encoders. options: functions that carry out an option of a command of the core.
    """

    commands: Sequence[Command] = ()
    stages: Sequence[StageRow] = ()
    readers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    writers: Mapping[str, str] = field(default_factory=dict)
    engines: Mapping[str, object] = field(default_factory=dict)
    renderers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Registry:
    """The plug-ins by name, and the reasons why others could not be loaded."""

    plugins: Mapping[str, Plugin]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> dict[str, Command]:
        """The commands of all plug-ins, by name."""
        return dict(self._once("command", lambda plugin: {row.name: row for row in plugin.commands}))

    @property
    def stages(self) -> tuple[StageRow, ...]:
        """The rows of all stages that plug-ins add."""
        found = self._once("stage", lambda plugin: {row.name: row for row in plugin.stages})
        return tuple(row for _, row in found)

    def all_of(self, kind: str) -> dict[str, Any]:
        """All `writers`, `engines` and the like by name, and all readers of a `readers.WHAT`."""
        kind, _, what = kind.partition(".")

        def of(plugin: Plugin) -> Mapping[str, Any]:
            added: Mapping[str, Any] = getattr(plugin, kind)
            return added.get(what, {}) if what else added

        return dict(self._once(kind, of))

    def find(self, kind: str, name: str) -> Any:  # noqa: ANN401 - of any kind
        """One of `all_of` a kind, loaded. Raises MissingPluginError for a name that no plug-in has."""
        added = self.all_of(kind)
        if name not in added:
            raise MissingPluginError(kind, name, tuple(self.missing))
        return resolve_name(added[name]) if isinstance(added[name], str) else added[name]

    def _once(self, what: str, of: Callable[[Plugin], Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
        """What every plug-in adds, under its name. Raises ConfigError for a name that two plug-ins add."""
        owners = dict[str, str]()
        for owner, plugin in self.plugins.items():
            for name, added in of(plugin).items():
                if owners.setdefault(name, owner) != owner:
                    raise ConfigError(
                        f"plug-ins {owners[name]} and {owner} both add the {what} {name!r}; uninstall one of them"
                    )
                yield name, added


@cache
def registry() -> Registry:
    """The plug-ins of all installed packages. One that can't be loaded is `missing`, with the reason."""
    plugins, missing = dict[str, Plugin](), dict[str, str]()
    for entry in sorted(
        entry_points(group=GROUP), key=lambda each: (each.value.split(".")[0] != "sparse_adapt", each.name)
    ):
        try:
            plugin = entry.load()
        except Exception as error:  # whatever a module of somebody else raises
            missing[entry.name] = first_line(error)
            continue
        if not isinstance(plugin, Plugin):
            missing[entry.name] = f"{entry.value} is no Plugin"
            continue
        plugins[entry.name] = plugin
    return Registry(plugins, missing)
