"""scikit-learn's 1,797 pictures of digits as two CSV files: `python make_data.py data/digits`."""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

pixels, digits = load_digits(return_X_y=True)
parts = train_test_split(pixels, digits, test_size=0.3, random_state=0, stratify=digits)
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, x, y in (("train", parts[0], parts[2]), ("test", parts[1], parts[3])):
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"p{i}" for i in range(64)), "digit"])
        writer.writerows([*map(int, row), int(label)] for row, label in zip(x, y, strict=True))
