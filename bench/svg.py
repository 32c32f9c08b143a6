"""The page of a picture for the docs, in light and dark colours."""

from collections.abc import Sequence

# A background of its own keeps the text readable on pages whose colours don't follow the reader's preference.
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.page { fill: #ffffff; }
.grid { stroke: #d1d9e0; }
.a { stroke: #0969da; fill: #0969da; }
.b { stroke: #bc4c00; fill: #bc4c00; }
.c { stroke: #6e7781; fill: #6e7781; }
text.a, text.b, text.c { stroke: none; font-weight: 600; }
polyline { fill: none !important; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .page { fill: #0d1117; }
  .grid { stroke: #3d444d; }
  .a { stroke: #4493f8; fill: #4493f8; }
  .b { stroke: #f0883e; fill: #f0883e; }
  .c { stroke: #9198a1; fill: #9198a1; }
}
"""


def make_page(title: str, width: int, height: int, left: int, parts: Sequence[str]) -> str:
    """Return the SVG with its title at `left` and its parts."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
            f'<text class="title" x="{left}" y="32">{title}</text>',
            *parts,
            "</svg>",
        ]
    )
