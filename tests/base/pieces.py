"""Work that workers are asked for; this module is loaded quickly."""

from __future__ import annotations

import threading

import numpy as np

from binas.base.errors import ConfigError


def times(factor):
    """Multiplies; negative numbers are refused."""

    def work(item, progress):
        progress.say(f"item {item}")
        if np.any(np.less(item, 0)):
            raise ConfigError(f"{item} is negative.")
        return factor * item

    return work


def waiting():
    """Never ends."""

    def work(item, progress):
        progress.say("waiting")
        threading.Event().wait()

    return work
