"""Pages to look at: of a run, of a model, of any result of a command; and the explorer, which serves them."""

from sparse_adapt.registry import Command, Plugin

HERE = "sparse_adapt.plugins.pages"

PLUGIN = Plugin(
    commands=(
        Command("report", f"{HERE}.commands:write_report", panel="Understand"),
        Command("explore", f"{HERE}.commands:explore", panel="Understand"),
    ),
    readers={"files": {"page": f"{HERE}.html:read_page"}},
    renderers={
        "page": f"{HERE}.html:written",
        "fragment": f"{HERE}.html:fragment",
        "run": f"{HERE}.run:try_run_page",
        "pdf": f"{HERE}.html:pdf_file",
        "png": f"{HERE}.html:png_file",
        "svg": f"{HERE}.html:svg_file",
    },
)
