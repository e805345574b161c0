"""The same work on a cluster: Ray here, Spark and processes that train together in modules of their own."""

from cellmend.engines.ray import connected, reason, run, score

__all__ = ["connected", "reason", "run", "score"]
