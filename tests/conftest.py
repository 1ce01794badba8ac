"""What all tests share: the hypothesis profiles and the folder of real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# `ci` is the default: the same examples in every run, and no deadline on a busy machine.
# To search for new counterexamples: pytest --hypothesis-profile=explore
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile("ci")


def find_data() -> Path | None:
    """Return the folder of real motions and models: $POISE_DATA, else ../shared/data, else None."""
    named = os.environ.get("POISE_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real motions and models; the test is skipped where it is missing."""
    folder = find_data()
    if folder is None:
        pytest.skip("no data folder: set POISE_DATA or put it at ../shared/data")
    return folder
