"""Sphinx configuration; `make docs` builds it with warnings as errors."""

import sys
from pathlib import Path

import poise

sys.path.insert(0, str(Path(__file__).parent))  # for command_help

project = "poise"
author = "The poise developers"
copyright = "The poise developers"
release = version = poise.__version__

extensions = [
    "command_help",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Floats": "Floats", "SceneLike": "SceneLike"}
suppress_warnings = ["ref.python"]  # a shape such as (n, nv) in a docstring is no reference
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"poise {release}"
