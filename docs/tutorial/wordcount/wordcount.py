"""Count the words of all texts under a folder: `python wordcount.py INPUT OUTPUT`."""

import collections
import json
import pathlib
import sys

texts = sorted(pathlib.Path(sys.argv[1]).rglob("*.txt"))
words: collections.Counter[str] = collections.Counter()
for done, text in enumerate(texts, start=1):
    words.update(text.read_text().lower().split())
    print(f"{text.name}: {words.total()} words so far")
    print(f"[EASEL_PROGRESS] {done / len(texts)}")
pathlib.Path(sys.argv[2], "counts.json").write_text(json.dumps(dict(words.most_common()), indent=1))
print(f"[EASEL_TAG_NUM] fileset words:{words.total()}")
