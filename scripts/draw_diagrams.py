"""Draws docs/pictures/diagrams/*.mmd as SVG beside them, in a browser: the documents' site runs no foreign script.

npm install --prefix FOLDER mermaid && python scripts/draw_diagrams.py FOLDER/node_modules/mermaid/dist/mermaid.min.js
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from easel.testing import browser

DIAGRAMS = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "diagrams"
DRAW = """
async ([source, name]) => {
  const theme = { theme: "neutral", fontFamily: "sans-serif", flowchart: { htmlLabels: false, nodeSpacing: 40 } };
  mermaid.initialize({ startOnLoad: false, htmlLabels: false, ...theme });
  return (await mermaid.render(name, source)).svg;
}
"""


def on_paper(svg: str) -> str:
    """Returns the picture with its size and a white ground, so that it can be read in a dark theme, too."""
    box = re.search(r'viewBox="([-\d.]+) ([-\d.]+) ([\d.]+) ([\d.]+)"', svg)
    assert box is not None, "what was drawn names no size"
    left, top, width, height = (float(number) for number in box.groups())
    ground = f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="#fff"/>'
    sized = svg.replace('width="100%"', f'width="{width:.0f}" height="{height:.0f}"', 1)
    return re.sub(r"(<svg[^>]*>)", lambda found: found[1] + ground, sized, count=1) + "\n"


def main(library: Path) -> None:
    with browser.running() as chrome:
        page = chrome.new_page()
        page.add_script_tag(path=library)
        for source in sorted(DIAGRAMS.glob("*.mmd")):
            svg = page.evaluate(DRAW, [source.read_text(), source.stem])
            source.with_suffix(".svg").write_text(on_paper(svg))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("library", type=Path, help="mermaid.min.js")
    main(asked.parse_args().library)
