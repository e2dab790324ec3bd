"""The pure parts of the comparisons of queues and of the log's choices."""

from __future__ import annotations

from pathlib import Path

from benchmarks.log.plan import QUESTIONS, choice_of, points
from benchmarks.log_choices import key_of
from benchmarks.log_choices import markdown as choices_markdown
from benchmarks.results.choosing import PARTS, Key, draw, markdown
from benchmarks.results.kept import Kept
from benchmarks.stage.variants import VARIANTS
from mailismus.queue.providers.log.control.choices import LogChoices


def test_what_was_kept_is_found_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    Kept(path).add(("a", "b"), {"rate": 1.0})
    Kept(path).add(("a", "b"), {"rate": 2.0})
    assert Kept(path).of(("a", "b")) == [{"rate": 1.0}, {"rate": 2.0}]
    assert Kept(path).of(("a",)) == []


def test_the_choices_of_a_question_take_turns() -> None:
    found = [point.choice for point in points(["waiting"], (50,))]
    assert found == [choice.name for choice in QUESTIONS["waiting"].choices]


def test_the_first_choice_of_each_question_about_new_mail_is_what_a_server_does() -> None:
    for name in ("waiting", "waiting-alone", "positions", "contents"):
        first, default = QUESTIONS[name].choices[0], LogChoices()
        assert (first.company_s, first.round_s, first.segments_a_round) == (
            default.company_s,
            default.round_s,
            default.segments_a_round,
        )


def test_each_point_has_one_choice() -> None:
    for point in points(list(QUESTIONS)):
        assert choice_of(point).name == point.choice


def test_a_table_tells_the_median_and_the_spread_of_each_choice() -> None:
    kept, point = Kept(None), points(["waiting"], (1,))[0]
    for rate in (1.0, 3.0, 2.0):
        kept.add(key_of("ext4", point), dict.fromkeys((*QUESTIONS["waiting"].figures, "others %"), rate))
    assert "| ext4 | 1 | 10 ms | 3 | 2 (1-3) |" in choices_markdown(kept)


def _measured() -> Kept:
    kept = Kept(None)
    for part, figures in PARTS.items():
        for variant in VARIANTS:
            kept.add(Key("ext4", part, variant), dict.fromkeys(figures, 5.0))
    return kept


def test_all_queues_stand_in_the_tables() -> None:
    text = markdown(_measured())
    for part in PARTS:
        for variant in VARIANTS:
            assert f"| {part} | ext4 | {variant} | 1 | 5 |" in text


def test_a_rate_counts_only_where_others_let_the_machine_alone() -> None:
    kept, key = Kept(None), Key("ext4", "W1/50", "log")
    kept.add(key, {**dict.fromkeys(PARTS["W1/50"], 5.0), "others %": 45.0})
    assert "| W1/50 | ext4 | log | 1 | - | - | - | 5 | 5 | 5 | 45 |" in markdown(kept)
    kept.add(key, {**dict.fromkeys(PARTS["W1/50"], 7.0), "others %": 5.0})
    assert "| W1/50 | ext4 | log | 2 | 7 | 7 | 7 | 6 (5-7) |" in markdown(kept)


def test_a_drawing_has_a_panel_for_each_part_that_was_measured_of_two_queues() -> None:
    assert set(draw(_measured())) == {"new-mail.svg", "disk.svg", "backlog.svg"}
    kept = Kept(None)
    assert draw(kept) == {}
    kept.add(Key("ext4", "W2/50", "log"), dict.fromkeys(PARTS["W2/50"], 5.0))
    for variant in ("clustered", "log"):
        kept.add(Key("ext4", "W1/50", variant), dict.fromkeys(PARTS["W1/50"], 5.0))
    (text,) = (text for name, text in draw(kept).items() if name == "new-mail.svg")
    assert "W1, 50 sessions" in text
    assert "W2, 50 sessions" not in text
