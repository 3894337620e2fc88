"""Settings of the documentation site, which `make docs` builds."""

import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[1])
sys.path[:0] = [str(Path(__file__).parent / "_extensions"), ROOT]
os.environ["PYTHONPATH"] = ROOT  # notebooks show this checkout

from legged.version import __version__  # noqa: E402 (the path is set above)

project = "legged"
author = "the legged authors"
copyright = f"2026, {author}"  # in the footer of each page
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference", "replays"]
exclude_patterns = ["_extensions"]
default_role = "literal"
suppress_warnings = ["ref.python"]  # words such as nq in a signature name no object

html_theme = "furo"
html_title = f"legged {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False

myst_heading_anchors = 4
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 900  # [s] for a cell, also on a busy machine
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
napoleon_custom_sections = [("Source", "notes_style")]
napoleon_use_ivar = True
napoleon_use_rtype = False
