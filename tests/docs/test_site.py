"""The site is built strictly, without a network, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys

import pytest
from pages import HOUSE

NOWHERE = "http://127.0.0.1:9"  # whoever asks for a page of the network is refused
LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="?(?:https?:)?//[^">]*')


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'binas[docs]'")
    offline = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), NOWHERE)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=HOUSE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    assert not [
        (page.name, found) for page in pages for found in LOADED.findall(page.read_text(encoding="utf-8"))
    ]
