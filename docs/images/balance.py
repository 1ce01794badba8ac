"""Makes the pictures of docs/balance.md, which its example leaves: python docs/images/balance.py"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "09_balance.py"
PICTURES = {"balance.png": "balance.png", "sheet.png": "kick.png"}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(EXAMPLE), "--out", folder], check=True)
        for left, name in PICTURES.items():
            shutil.copy(Path(folder) / left, HERE / name)
