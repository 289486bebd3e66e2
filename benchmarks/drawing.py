"""A drawing for the pages: shapes and words as SVG that stands alone, in a light and in a dark scheme."""

from html import escape

STYLE = """
  .card{fill:#ffffff;stroke:#d0d7de}
  text{font-family:-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;font-size:14px;fill:#1f2328}
  .head{font-size:15px;font-weight:600}
  .small{font-size:12px}
  .muted{fill:#59636e}
  .line{stroke:#59636e;fill:none;stroke-width:1.5}
  .barm{fill:#afb8c1}
  .dot{fill:#0969da}
  @media (prefers-color-scheme: dark){
    .card{fill:#0d1117;stroke:#3d444d}
    text{fill:#e6edf3}
    .muted{fill:#9198a1}
    .line{stroke:#9198a1}
    .barm{fill:#656c76}
    .dot{fill:#4493f8}
  }
"""


class Drawing:
    """Shapes in the order in which they are drawn; places in pixels from the upper left corner."""

    def __init__(self, width: int, height: int, title: str, description: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        ]

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Words on a line."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line."""
        self.parts.append(f'<line class="line" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A filled rectangle."""
        self.parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:.1f}" width="{width:g}" height="{height:.1f}"/>'
        )

    def dot(self, x: float, y: float) -> None:
        """A small disc."""
        self.parts.append(f'<circle class="dot" cx="{x:g}" cy="{y:.1f}" r="4.5"/>')

    def finished(self) -> str:
        """The whole drawing."""
        return "\n".join([*self.parts, "</svg>"]) + "\n"
