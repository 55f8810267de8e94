"""Look-up tables of other tools, read into ours: keyed by shapes there, by stage, block and config here."""

from binas.costs.foreign.once_for_all import read_once_for_all
from binas.costs.foreign.tf_nas import read_tf_nas

__all__ = ["read_once_for_all", "read_tf_nas"]
