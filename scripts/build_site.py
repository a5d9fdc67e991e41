"""Builds docs/ as a site into src/easel/serve/site/, and notes which inline scripts its pages have.

The server allows those scripts and no others (see serve/documents.py).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "src" / "easel" / "serve" / "site"
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def build() -> int:
    """Returns how many pages were made."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    build_site(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(SITE)))
    pages = sorted(SITE.rglob("*.html"))
    scripts = {script for page in pages for script in _INLINE.findall(page.read_bytes())}
    hashes = sorted(base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts)
    (SITE / "scripts.json").write_text(json.dumps(hashes, indent=1), encoding="utf-8")
    return len(pages)


if __name__ == "__main__":
    sys.stderr.write(f"{build()} pages in {SITE}\n")
