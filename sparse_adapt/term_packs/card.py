"""The card of a term pack: the README.md beside its file, as the Hub reads and shows it."""

from huggingface_hub import ModelCardData

from sparse_adapt.stages.card import code
from sparse_adapt.term_packs.pack import TermPack

TAGS = ["sparse-adapt", "term-pack", "sparse-encoder", "splade"]
HERE = "PACK_OR_HUB_ID"


def pack_card(pack: TermPack) -> str:
    """The terms of a pack, what taught them, which base model it fits, and how it is put in."""
    base, made = pack.header.base, pack.header.made
    header = ModelCardData(license=base.licence, tags=TAGS, base_model=base.hub_id or None).to_yaml()
    terms = ", ".join(map(code, pack.terms))
    return (
        f"---\n{header}\n---\n\n# {pack.name}: {len(pack.terms):,} terms for {base.name}\n\n"
        f"Rows of new tokens, without a model, for `{base.hub_id or base.name}` alone: {terms}.\n\n"
        f"Taught by {made.stages_in_words}; made by {made.author} with sparse-adapt {made.version}, {made.at[:10]}.\n\n"
        f"```shell\nsparse-adapt unpack {HERE} --model {base.name} -o with-terms\n```\n\n"
        f"The licence of the base model is {base.licence}. What the stages learnt from may have a licence of its own.\n"
    )
