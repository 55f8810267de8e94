"""Every random draw of training is a function of (seed, purpose, numbers): resuming needs no hidden state."""

from __future__ import annotations

import hashlib

import torch


def derived_seed(seed: int, purpose: str, *numbers: int) -> int:
    """A 63-bit seed that depends on all arguments; streams of different purposes never meet."""
    text = ",".join(map(str, (seed, purpose, *numbers)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, purpose: str, *numbers: int) -> torch.Generator:
    """A CPU generator with :func:`derived_seed`."""
    return torch.Generator().manual_seed(derived_seed(seed, purpose, *numbers))
