"""The command line of `sendmail`, in the forms in which programs write it."""

from __future__ import annotations

import pytest

from mailismus.sendmail.options import Mode, SendmailOptions, UsageError, parse_options


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        # Debian's cron
        (
            "-FCronDaemon -i -B8BITMIME -oem root",
            SendmailOptions(full_name="CronDaemon", has_dot_end=False, recipients=("root",)),
        ),
        ("-t -i", SendmailOptions(reads_recipients=True, has_dot_end=False)),  # PHP
        ("-ti -fjoe", SendmailOptions(reads_recipients=True, has_dot_end=False, sender="joe")),
        (
            "-i -f joe@a.example -- sue@b.example",
            SendmailOptions(has_dot_end=False, sender="joe@a.example", recipients=("sue@b.example",)),
        ),
        ("-oi -r joe a b", SendmailOptions(has_dot_end=False, sender="joe", recipients=("a", "b"))),
        ("-oem -odb -om -oo -o 7 a", SendmailOptions(recipients=("a",))),
        ("-O IgnoreDots=true a", SendmailOptions(has_dot_end=False, recipients=("a",))),
        ("-N success,failure -R hdrs -V x+2By -v a", SendmailOptions(is_verbose=True, recipients=("a",))),
        ("-G -U -n -m -h 3 -p x -L y -X /dev/null -Am a", SendmailOptions(recipients=("a",))),
        ("-f <> a", SendmailOptions(sender="", recipients=("a",))),
        ("a -f b", SendmailOptions(recipients=("a", "-f", "b"))),
        ("-- -f", SendmailOptions(recipients=("-f",))),
        ("-bm a", SendmailOptions(recipients=("a",))),
        ("-C file -bs", SendmailOptions(mode=Mode.SMTP, config="file")),
        ("-bp", SendmailOptions(mode=Mode.LIST)),
        ("-bi", SendmailOptions(mode=Mode.ALIASES)),
        ("-I", SendmailOptions(mode=Mode.ALIASES)),
        ("-q", SendmailOptions(mode=Mode.FLUSH)),
        ("-qRb.example", SendmailOptions(mode=Mode.FLUSH, flush=("recipient=*b.example*",))),
        ("-qSjoe -qI0000000000000001", SendmailOptions(mode=Mode.FLUSH, flush=("sender=*joe*", "0000000000000001"))),
    ],
)
def test_programs_are_understood(words: str, wanted: SendmailOptions) -> None:
    assert parse_options("sendmail", words.split()) == wanted


def test_an_empty_argument_is_one() -> None:
    assert parse_options("sendmail", ["-f", "", "-F", "", "a"]) == SendmailOptions(sender="", recipients=("a",))


@pytest.mark.parametrize(("name", "mode"), [("mailq", Mode.LIST), ("newaliases", Mode.ALIASES), ("ssmtp", Mode.SEND)])
def test_the_name_of_the_program_counts(name: str, mode: Mode) -> None:
    assert parse_options(name, []).mode is mode


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("-Z", "-Z is not known"),
        ("-f", "-f needs an argument"),
        ("-bd", "the server is started by twistd"),
        ("-bx", "-bx is not known"),
        ("-q30m", "the server retries by itself"),
        ("-qR", "the server retries by itself"),
        ("-N sometimes", "write never"),
        ("-N never,failure", "write never"),
        ("-R all", "write full or hdrs"),
        ("-V a=b+zz", "envelope id"),
    ],
)
def test_what_is_wrong_is_told(words: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        parse_options("sendmail", words.split())
