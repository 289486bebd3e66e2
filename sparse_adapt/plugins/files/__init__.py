"""Files that need a library to be read: HTML, Markdown, PDF, workbooks, Parquet, terminologies, dumps."""

from sparse_adapt.registry import Plugin

HERE = "sparse_adapt.plugins.files"
TERMINOLOGIES = (".rdf", ".skos", ".ttl", ".nt", ".n3", ".jsonld", ".obo", ".tbx", ".xml")
SMART = dict.fromkeys((".all", ".qry", ".smart"), f"{HERE}.dumps:read_smart")

PLUGIN = Plugin(
    readers={
        "documents": {**SMART, "posts.xml": f"{HERE}.dumps:read_posts"},
        "queries": SMART,
        "entries": dict.fromkeys(TERMINOLOGIES, f"{HERE}.terminologies:read_terminology"),
        "tables": {
            **dict.fromkeys((".xlsx", ".xlsm"), f"{HERE}.workbooks:read_workbook"),
            ".parquet": f"{HERE}.workbooks:read_frame",
        },
        "texts": {
            **dict.fromkeys((".md", ".markdown"), f"{HERE}.loose:read_markdown"),
            **dict.fromkeys((".html", ".htm", ".xhtml"), f"{HERE}.loose:read_html"),
            ".pdf": f"{HERE}.loose:read_pdf",
        },
        "markup": {"html": f"{HERE}.markup:text_of_page", "lines": f"{HERE}.markup:without_markup"},
    }
)
