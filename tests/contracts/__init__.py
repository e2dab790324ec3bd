import pytest

for _name in (
    "bench",
    "durable",
    "entering",
    "failing",
    "history",
    "leaving",
    "looking",
    "queue_machine",
    "settling",
    "words",
):
    pytest.register_assert_rewrite(f"tests.contracts.{_name}")
