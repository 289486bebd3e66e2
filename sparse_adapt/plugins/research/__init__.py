"""Research beside the main path: the stages of papers, invented words, contradictions, groups of texts, suites."""

from sparse_adapt.registry import Command, Plugin, StageRow

HERE = "sparse_adapt.plugins.research"

PLUGIN = Plugin(
    commands=tuple(
        Command(name, f"{HERE}.commands:{function}", panel="Research")
        for name, function in (
            ("contradict", "write_contradictions"),
            ("coin", "coin"),
            ("recovery", "recovery"),
            ("groups", "groups"),
            ("similarity", "similarity"),
            ("relevant-words", "relevant_words"),
        )
    ),
    tasks={
        "preserve": f"{HERE}.stages.dense:DensePreserve",
        "scores": f"{HERE}.stages.dense:scores",
    },
    options={
        "evaluate --suite": f"{HERE}.commands:suite",
        "evaluate --template": f"{HERE}.commands:suite_file",
        "run --vary": f"{HERE}.sensitivity:varied",
    },
    stages=(
        StageRow(
            "dynamic",
            "sparse_adapt.plugins.research.stages.dynamic:DYNAMIC",
            "Train on sentences whose hardest domain words are masked.",
            in_adapt=True,
            is_research=True,
            after="dictionary",
        ),
        StageRow(
            "joint",
            "sparse_adapt.plugins.research.stages.pairs:JOINT",
            "Train with pairs whose new words are masked.",
            in_adapt=True,
            is_research=True,
            after="dynamic",
        ),
        StageRow(
            "contrast",
            "sparse_adapt.plugins.research.stages.pairs:CONTRAST",
            "Train with pairs of a query and its document.",
            in_adapt=True,
            without_terms=True,
            after="joint",
        ),
        StageRow(
            "triplets",
            "sparse_adapt.plugins.research.stages.triplets:TRIPLETS",
            "Train sentences to be far from their contradictions.",
            is_research=True,
            after="contrast",
        ),
        StageRow(
            "labelled",
            "sparse_adapt.plugins.research.stages.triplets:LABELLED_PAIRS",
            "Train with labelled pairs: what follows, what contradicts.",
            is_research=True,
            after="triplets",
        ),
        StageRow(
            "published",
            "sparse_adapt.plugins.research.stages.published:PUBLISHED",
            "Train with the six published loss terms, as they are.",
            usual=("published",),
            is_research=True,
            after="distill",
        ),
    ),
)
