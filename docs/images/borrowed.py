"""Takes pictures from what examples and benchmarks leave: python docs/images/borrowed.py

squat.png          of docs/files.md
gains.png          of docs/control.md
contact-cost.png   of docs/performance.md; takes minutes, on an idle machine, and only on request:
                   python docs/images/borrowed.py contact-cost.png
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCES = {
    # picture: program, and what it leaves
    "squat.png": ("examples/01_your_own_files.py", "out/files/sheet.png"),
    "gains.png": ("examples/06_choose_gains.py", "out/gains/gains.png"),
    "contact-cost.png": (
        "benchmarks/run.py --only contacts --out {folder}/bench.json",
        "contacts.png",
    ),
}

for picture in sys.argv[1:] or ("squat.png", "gains.png"):
    program, left = SOURCES[picture]
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ROOT / program.split()[0]), *program.format(folder=folder).split()[1:]]
        subprocess.run([sys.executable, *command], cwd=folder, check=True)
        shutil.copy(Path(folder) / left, HERE / picture)
