"""The words of reasons in columns: each that the server says has a meaning that fits."""

from __future__ import annotations

from mailismus.deliver.why.hold import Hold
from mailismus.observe.hold_words import PHRASES, phrase_of, why_of
from mailismus.top.table import WHY_CELLS


def test_each_word_has_a_meaning_that_fits_into_a_column() -> None:
    assert set(PHRASES) == {hold.value for hold in Hold}
    assert all(len(phrase) < WHY_CELLS for phrase in PHRASES.values())
    told = [phrase for phrase in PHRASES.values() if phrase]
    assert len(set(told)) == len(told)


def test_a_reason_begins_with_what_its_word_means() -> None:
    assert why_of("dead", "mx.b.example is left alone") == "host down: mx.b.example is left alone"
    assert why_of("underway", "in delivery") == "in delivery"
    assert why_of("dead", "") == "host down"
    assert why_of("", "") == ""
    assert phrase_of("a newer word") == "a newer word"
