"""How long what failed is left alone: as long again as it has failed already, within bounds. Pure.

A trouble of a moment delays reports by little, a long one is not asked about all the time.
"""

FIRST_S = 1.0


def pause_s(failing_s: float, longest_s: float) -> float:
    """Return the seconds until the next try of what has failed for `failing_s` seconds."""
    return min(longest_s, max(FIRST_S, failing_s))
