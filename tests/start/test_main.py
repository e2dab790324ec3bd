"""The command line: exit codes, help, and what is not built."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.__main__ import build_parser, main

CONFIG = str(Path(__file__).parents[2] / "config" / "mailismus.xml")


def test_a_good_configuration_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", CONFIG, "config", "check"]) == 0
    assert capsys.readouterr().out.endswith(f"{CONFIG}: ok\n")


def test_a_broken_one_is_told_in_one_line_with_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.xml").write_text("<mailserver>\n<oops\x85\u202e/></mailserver>")
    (tmp_path / "d.xml").write_text("<mailserver>\n<admin><socket>\x9b2J\u2028%X%\n\n</socket></admin></mailserver>")
    for name in ("c.xml", "d.xml"):
        assert main(["--config", str(tmp_path / name), "config", "check"]) == 78
        message = capsys.readouterr().err
        assert message.startswith(f"{tmp_path / name}:2: ")
        assert message.removesuffix("\n").isprintable()


def test_every_value_is_shown_with_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", CONFIG, "config", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"mta/queue/minfree = 2% [{CONFIG}:") for line in lines)
    assert any(line.startswith("application/announcehost = ") and line.endswith("[default]") for line in lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--config", "a.xml", "queue", "list"], "a.xml"),
        (["queue", "list", "--config", "b.xml", "domain=b.example"], "b.xml"),
        (["queue", "--config=c.xml", "list"], "c.xml"),
        (["--config", "a.xml", "config", "check", "--config", "d.xml"], "d.xml"),
        (["queue", "list"], None),
    ],
)
def test_the_configuration_is_named_before_or_behind_the_command(words: list[str], expected: str | None) -> None:
    assert build_parser().parse_args(words).config == expected


def test_every_command_takes_the_configuration_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "--config", CONFIG]) == 0
    assert capsys.readouterr().out.endswith(f"{CONFIG}: ok\n")
    with pytest.raises(SystemExit):
        main(["config", "check", "--config"])
    assert capsys.readouterr().err.startswith("mailismus config check: argument --config: expected one argument")


@pytest.mark.parametrize("verb", ["sample", "schema"])
def test_what_is_shipped_is_printed(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", verb]) == 0
    name = {"sample": "mailismus.xml", "schema": "mailismus.rng"}[verb]
    assert capsys.readouterr().out == (Path(CONFIG).parent / name).read_text()


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["config"], ["config", "nonsense"], ["config", "check", "--nonsense"], ["--config"]]
)
def test_wrong_usage_is_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 64
    assert "--help" in capsys.readouterr().err


def test_an_unknown_option_of_a_command_is_refused_with_the_help_of_that_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["queue", "count", "area=deferred", "--nonsense"])
    text = "mailismus queue count: unrecognized arguments: --nonsense; see: mailismus queue count --help\n"
    assert capsys.readouterr().err == text


@pytest.mark.parametrize("command", ["queue flush", "shell"])
@pytest.mark.parametrize("option", ["--queue", "--spool"])
def test_a_command_of_the_running_server_refuses_a_copied_queue(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), option, "var/x"]) == 64
    text = f"mailismus {command} works on the running server, not on files: remove {option} var/x"
    assert capsys.readouterr().err == f"{text}; see: mailismus {command} --help\n"


def test_a_file_that_is_not_there_is_named_before_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(tmp_path / "x")]) == 74
    assert capsys.readouterr().err == f"mailismus: {tmp_path}/x: No such file or directory\n"


@pytest.mark.parametrize("to", ["joe@", "j@x..y", "relay:0", "relay:70000", "re lay", "", "h" * 60 + "." + "h" * 60, "[::1"])
def test_nonsense_is_no_place_to_redirect_to(to: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["queue", "redirect", "--all", "--reason", "x", "--to", to])
    assert ended.value.code == 64
    assert "argument --to: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--json", "area=x", "--limit", "5", "sender=y"], ["sender=y", "--json", "area=x"]])
def test_options_may_stand_between_filters(words: list[str]) -> None:
    parsed = build_parser().parse_args(["queue", "list", *words])
    assert sorted(parsed.filter) == ["area=x", "sender=y"]
    assert parsed.json


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["config", "--help"], ["config", "check", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
    assert "Mailismus" in capsys.readouterr().out
