"""Which users of the system may hand over messages."""

from __future__ import annotations

import pytest

from mailismus.config.values.settings import SendmailSettings
from mailismus.sendmail.users import find_users

OWN, OTHER, NOBODY = 4242, 4343, 65534


@pytest.mark.parametrize(
    ("allow", "deny", "who"),
    [
        ("*", "", {0, OWN, OTHER, NOBODY}),
        ("", "", {0, OWN}),
        ("nobody", "", {0, OWN, NOBODY}),
        ("4343", "", {0, OWN, OTHER}),
        ("*", "nobody 0", {OWN, OTHER}),
        ("nobody", "nobody", {0, OWN}),
        ("*", "*", set()),
        ("*", "no-such-user", {0, OWN, OTHER, NOBODY}),
    ],
)
def test_deny_counts_before_allow(allow: str, deny: str, who: set[int]) -> None:
    users = find_users(SendmailSettings("/x", tuple(allow.split()), tuple(deny.split()), b"x"), OWN)
    assert {uid for uid in (0, OWN, OTHER, NOBODY) if users.may(uid)} == who
    assert users.unknown == (("no-such-user",) if "no-such-user" in deny else ())
