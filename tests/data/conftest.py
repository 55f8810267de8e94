"""Nothing here may reach the network, and what ``datasets`` caches goes to a folder of its own."""

from __future__ import annotations

import os
import tempfile

_CACHE = tempfile.TemporaryDirectory()  # read by datasets when it is first imported
os.environ.setdefault("HF_HOME", _CACHE.name)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
