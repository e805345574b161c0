"""How long fuzzing takes: quick and the same in every run of the tests, or longer; see docs/reliability.md."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

slow_is_fine = {"deadline": None, "suppress_health_check": [*HealthCheck]}
settings.register_profile("quick", max_examples=50, derandomize=True, database=None, **slow_is_fine)
settings.register_profile("long", max_examples=int(os.environ.get("CELLMEND_FUZZ", "2000")), **slow_is_fine)

FUZZ = settings.get_profile("long" if "CELLMEND_FUZZ" in os.environ else "quick")
