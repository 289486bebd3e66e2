"""How the documentation is built: `make docs`. Needs no network; two pages are written from the code first."""

import sys
from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import nodes
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sparse_adapt import __version__  # noqa: E402
from sparse_adapt.registry import registry  # noqa: E402
from tools import pages  # noqa: E402

project = "sparse-adapt"
author = "the authors of sparse-adapt"
copyright = "the authors of sparse-adapt, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
if registry().missing:  # what a checkout without its plug-ins lacks is named on the page of commands
    suppress_warnings = ["autodoc.import_object", "myst.xref_missing"]
html_theme = "pydata_sphinx_theme"
html_title = "sparse-adapt"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_sidebars = {"**": []}  # the bar on top has every page
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}
default_role = "code"  # docstrings write `names` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula within a line, as MathML that browsers draw themselves."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on its own line."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks for its sources, and draw formulas without a script."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("builder-inited", lambda _: pages.write(HERE))
