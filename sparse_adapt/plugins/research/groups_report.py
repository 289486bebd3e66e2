"""Groups of texts before and after, to be read: tables, heat maps, a page with both.

DIR/groups.md      tables, and the heat maps where matplotlib is installed
DIR/groups.json    every figure
DIR/groups.png     difference and similarity, a row of maps a model
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.files.folders import output_folder, write_json, write_text
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.research.drawing import empty_figure, markdown_of
from sparse_adapt.plugins.research.groups import ALL, AT, Groups
from sparse_adapt.report.tables import Column, Row, Table

NEAREST = 50  # rows of the table of nearest texts
LABELLED = 30  # groups at most whose names stand beside a map
Models = Mapping[str, Groups]  # by name: the model, and before it what it is held against


def group_tables(models: Models) -> list[Table]:
    """Similarity and accuracy, a row a model and a kind of query; and the similarity within each group."""
    first = next(iter(models.values()))
    figures = (
        Column("model", "model", "text"),
        Column("texts", "queries of", "text"),
        Column("queries", "number"),
        *(Column(f"A@{k}", f"A@{k}", "share", decimals=1) for k in AT),
        *(Column(f"found@{k}", f"found@{k}", "share", decimals=1) for k in AT[1:]),
        Column("within", "cosine within", decimals=3),
        Column("between", "between", decimals=3),
        Column("anisotropy", "anisotropy", decimals=3),
        Column("v_measure", "V-measure", decimals=3),
        Column("mean_difference", "mean difference", decimals=4),
    )
    rows = [row for name, groups in models.items() for row in _figures(name, groups)]
    columns = [Column("group", "group", "text"), Column("texts", "texts")]
    columns += [Column(f"model {number}", name, decimals=3) for number, name in enumerate(models)]
    note = "A@k: share of the k nearest other texts that is of the same group; found@k: one of them at least is; "
    note += "cosine: of two texts within or between groups; anisotropy: of any two texts; "
    note += "V-measure: of clusters that k-means finds; mean difference: the mean of that matrix, absolute"
    tables = [
        Table("Groups", figures, rows, note),
        Table(f"Cosine within each of {len(first.names):,} groups", tuple(columns), _within(models)),
    ]
    return [*tables, apart(models)] if len(models) > 1 else tables


def apart(models: Models) -> Table:
    """How far the matrices of two models are apart: the mean absolute difference of their entries."""
    before, after = (groups.matrices() for groups in list(models.values())[:2])
    rows: list[Row] = [
        {"matrix": title, "apart": float(np.nanmean(np.abs(after[title] - before[title])))}
        for title in before
    ]
    columns = (Column("matrix", "matrix", "text"), Column("apart", "mean absolute difference", decimals=4))
    return Table("What changed between the two models", columns, rows)


def nearest_table(name: str, groups: Groups) -> Table:
    """Each text as a query, its nearest other text, whether they are of a group, and their cosine; not all of many."""
    columns = (
        Column("query", "query", "text"),
        Column("candidate", "candidate", "text"),
        Column("label", "label", "text"),
        Column("similarity", "similarity", decimals=3),
    )
    rows: list[Row] = [
        {**each._asdict(), "label": "same" if each.label else "other"} for each in groups.nearest[:NEAREST]
    ]
    return Table(
        f"Nearest texts of {name}", columns, rows, f"the first {len(rows):,} of {len(groups.nearest):,}"
    )


def _figures(model: str, groups: Groups) -> list[Row]:
    rows: list[Row] = []
    alike = {
        "within": groups.within,
        "between": groups.between,
        "anisotropy": groups.anisotropy,
        "v_measure": groups.v_measure,
        "mean_difference": groups.mean_difference,
    }
    for name, group_accuracy in groups.found.items():
        accuracy = {f"A@{k}": group_accuracy.accuracy[k] for k in AT}
        accuracy |= {f"found@{k}": group_accuracy.found[k] for k in AT[1:]}  # found@1 is A@1
        rows.append(
            {
                "model": model,
                "texts": name,
                "queries": group_accuracy.queries,
                **accuracy,
                **(alike if name == ALL else {}),
            }
        )
    return rows


def _within(models: Models) -> list[Row]:
    first = next(iter(models.values()))
    return [
        {
            "group": name,
            "texts": first.sizes[row],
            **{
                f"model {number}": groups.similarity[row][row]
                for number, groups in enumerate(models.values())
            },
        }
        for row, name in enumerate(first.names)
    ]


def groups_object(models: Models) -> dict[str, object]:
    """Every figure, by model."""
    return {name: groups.to_dict() for name, groups in models.items()}


def write_groups_report(models: Models, place: Place) -> bool:
    """Put page, figures and maps into a folder; says whether there are maps, for which matplotlib is needed."""
    with output_folder(place) as work:
        write_json(work / "groups.json", groups_object(models))
        page = markdown_of([*group_tables(models), *(nearest_table(*each) for each in models.items())])
        try:
            plot_groups(models, work / "groups.png")
            page += "![difference and similarity of the groups](groups.png)\n"
        except MissingExtraError:
            pass
        write_text(work / "groups.md", page)
        return (work / "groups.png").is_file()


def plot_groups(models: Models, path: Path) -> None:
    """A heat map for each matrix of each model, one scale for a matrix. Raises MissingExtraError without matplotlib."""
    names = next(iter(models.values())).names
    side = 3.0 + 0.12 * min(len(names), LABELLED)
    figure = empty_figure(2 * side + 1, side * len(models))
    matrices = [groups.matrices() for groups in models.values()]
    axes = figure.subplots(len(models), len(matrices[0]), squeeze=False)
    for column, title in enumerate(matrices[0]):
        by_model = [of_model[title] for of_model in matrices]
        least, most = min(map(np.nanmin, by_model)), max(map(np.nanmax, by_model))
        for row, (name, values) in enumerate(zip(models, by_model, strict=True)):
            place = axes[row, column]
            image = place.imshow(values, vmin=least, vmax=most, cmap="viridis")
            place.set_title(f"{title}\n{Path(name).name}", fontsize=9, parse_math=False)
            shown = range(len(names)) if len(names) <= LABELLED else ()
            labels = [names[number] for number in shown]
            place.set_xticks(shown, labels, rotation=90, fontsize=6, parse_math=False)
            place.set_yticks(shown, labels, fontsize=6, parse_math=False)
            figure.colorbar(image, ax=place)
    figure.savefig(path, dpi=150)
