"""Term packs: new terms that a model learnt while its body stood still, each pack a small file for the same base."""

from sparse_adapt.registry import Command, Plugin

HERE = "sparse_adapt.plugins.packs"

PLUGIN = Plugin(
    commands=(
        Command("add-terms", f"{HERE}.adding:add_terms", panel="Start"),
        *(Command(name, f"{HERE}.packing:{name}", panel="Share") for name in ("pack", "unpack", "packs")),
    ),
    readers={"files": {"pack": f"{HERE}.pack:read_pack"}, "packs": {".pack": f"{HERE}.pack:files_to_push"}},
)
