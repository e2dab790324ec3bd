"""What becomes of each kind of part, and which messages are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mailismus.mail.convert.plan import Plan
from mailismus.mail.convert.refusal import NotConvertible
from mailismus.mail.convert.structure import MAX_DEPTH, MAX_HEADER, MAX_PARTS
from tests.mail.convert.converting import by_plan, converted, is_proved, lines, plan_of, why_not

MIME = "MIME-Version: 1.0\n"
MIXED = MIME + "Content-Type: multipart/mixed; boundary=b\n"
LONG_LINE = "x" * 999

PARTS = [
    # header of the part, body, header and body that come of it
    (
        "Content-Type: text/plain\n",
        "ascii ü and more of it\n",
        "Content-Type: text/plain\n{qp}",
        "ascii =C3=BC and more of it\n",
    ),
    ("{8bit}X-A: a\n", "ascii ü and more of it\n", "{qp}X-A: a\n", "ascii =C3=BC and more of it\n"),
    ("X-A: a\n{binary}", "Grüße", "X-A: a\n{base64}", "R3LDvMOfZQ=="),
    ("{8bit}", "7-bit\n", "{7bit}", "7-bit\n"),
    ("{binary}", LONG_LINE + "\n", "{qp}", "x" * 75 + "=\n" + ("x" * 75 + "=\n") * 12 + "x" * 24 + "\n"),
    ("{7bit}", LONG_LINE, "{7bit}", LONG_LINE),
    ("", LONG_LINE, "", LONG_LINE),
    ("{qp}", "=C3=BC", "{qp}", "=C3=BC"),
    ("{base64}", "R3LDvMOfZQ==", "{base64}", "R3LDvMOfZQ=="),
    ("Content-transfer-ENCODING:  8BIT \n", "ascii ü and more of it", "{qp}", "ascii =C3=BC and more of it"),
    ("{8bit}", "-" * 76 + " minus\n" + "a" * 40 + " ü\n", "{qp}", None),
    (
        "Content-Type: message/global\n{8bit}",
        "Subject: ü, and some more of it\n\n",
        None,
        "Subject: =C3=BC, and some more of it\n\n",
    ),
]
NAMES = {
    "qp": "Content-Transfer-Encoding: quoted-printable\n",
    "base64": "Content-Transfer-Encoding: base64\n",
    "7bit": "Content-Transfer-Encoding: 7bit\n",
    "8bit": "Content-Transfer-Encoding: 8bit\n",
    "binary": "Content-Transfer-Encoding: binary\n",
}


@pytest.mark.parametrize(("header", "body", "new_header", "new_body"), PARTS)
def test_each_part_gets_what_it_needs(header: str, body: str, new_header: str | None, new_body: str | None) -> None:
    header = (header or "Content-Type: text/plain\n").format(**NAMES)
    if "Content-Type" not in header:
        header += "Content-Type: text/plain\n"
    message = lines(f"{MIXED}\nbefore\n--b\n{header}\n{body}\n--b--\nbehind\n")
    result = converted(message)
    assert isinstance(result, bytes)
    assert result.isascii()
    if new_header is not None:
        for field in filter(None, new_header.format(**NAMES).split("\n")):
            assert field.encode() in result
    if new_body is not None:
        assert lines(f"\n\n{new_body}\n--b--\nbehind\n") in result
    assert max(map(len, result.split(b"\r\n"))) <= 76 or LONG_LINE in body


def test_all_but_the_encoding_stays_byte_for_byte() -> None:
    head = "Received: by x;\n\tnow\nSubject: a\n   folded  subject\nMime-version:1.0 (a comment)\n"
    kind = 'Content-Type: multipart/mixed;\n boundary="a b"; x=y\n'
    fields = "content-type:  TEXT/plain; charset=iso-8859-1\nCONTENT-TRANSFER-ENCODING: 8bit\nX: y\n"
    first = f"--a b   \n{fields}\n..dot\ngrün und so weiter"
    message = lines(f"{head}{kind}\n.pre\n{first}\n--a b--\n.epi\n", "latin-1")
    assert converted(message) == (
        message.replace(b"CONTENT-TRANSFER-ENCODING: 8bit", b"Content-Transfer-Encoding: quoted-printable").replace(
            b"gr\xfcn", b"gr=FCn"
        )
    )


def test_a_message_without_mime_becomes_one() -> None:
    begin = "Subject: a\n"
    text = "ü and more of the text\n"
    added = "MIME-Version: 1.0\nContent-Type: text/plain; charset={}\nContent-Transfer-Encoding: quoted-printable\n"
    assert converted(lines(f"{begin}\n{text}")) == lines(f"{begin}{added.format('utf-8')}\n=C3=BC and more of the text\n")
    assert converted(lines(f"{begin}\n{text}", "latin-1")) == lines(
        f"{begin}{added.format('unknown-8bit')}\n=FC and more of the text\n"
    )
    cut = converted(lines(f"{begin}\n{text}")[:-2] + b"\xc3\r\n")
    assert isinstance(cut, bytes)
    assert b"charset=unknown-8bit" in cut
    assert converted(lines(f"{begin}Content-Type: text/plain\n\n{text}")) == lines(
        f"{begin}Content-Type: text/plain\nMIME-Version: 1.0\nContent-Transfer-Encoding: quoted-printable\n\n"
        "=C3=BC and more of the text\n"
    )
    assert converted(lines(f"\n{text}")) == lines(f"{added.format('utf-8')}\n=C3=BC and more of the text\n")


def test_messages_within_messages_are_converted_inside() -> None:
    inner = "Subject: inner\n\nGrüße\n"
    message = lines(f"{MIXED}\n--b\nContent-Type: message/rfc822\n{NAMES['8bit']}\n{inner}--b--\n")
    result = converted(message)
    assert isinstance(result, bytes)
    assert (
        lines("Content-Type: message/rfc822\nContent-Transfer-Encoding: 7bit\n\nSubject: inner\nMIME-Version: 1.0\n")
        in result
    )
    digest = converted(lines(f"{MIME}Content-Type: multipart/digest; boundary=b\n\n--b\n\n{inner}--b--\n"))
    assert isinstance(digest, bytes)
    assert lines("--b\n\nSubject: inner\nMIME-Version: 1.0\n") in digest


def test_a_signed_part_without_8_bit_content_stays_beside_one_with() -> None:
    signed = f"Content-Type: multipart/signed; boundary=s\n{NAMES['8bit']}\n--s\n{NAMES['8bit']}\n7-bit\n--s--\n"
    message = lines(f"{MIXED}\n--b\n{signed}--b\nContent-Type: text/plain\n\nGrüße\n--b--\n")
    result = converted(message)
    assert isinstance(result, bytes)
    assert lines(signed) in result
    assert b"R3LDvMOfZQ==" in result


def test_a_missing_end_is_no_hindrance() -> None:
    message = lines(f"{MIXED}\n--b\nContent-Type: text/plain\n\nGrüße\n")
    result = converted(message)
    assert isinstance(result, bytes)
    assert result.endswith(b"\r\n\r\nR3LDvMOfZQ0K\r\n")


def test_no_line_of_a_result_is_taken_for_a_delimiter() -> None:
    text = "x" * 75 + "--b--" + "x" * 30 + "ü\n" + "y" * 75 + "-" * 200 + "--b\n"
    message = lines(f"{MIXED}\n--b\nContent-Type: text/plain\n\n{text}\n--b--\n")
    result = converted(message)
    assert isinstance(result, bytes)
    assert [line for line in result.split(b"\r\n") if line.startswith(b"--")] == [b"--b", b"--b--"]
    assert max(map(len, result.split(b"\r\n"))) <= 76


REFUSED = {
    "signed": (
        f"{MIME}Content-Type: multipart/signed; boundary=b\n\n--b\n\nü\n--b--\n",
        "its part of type multipart/signed",
    ),
    "encrypted": (
        f"{MIME}Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nü\n",
        "its part of type multipart/encrypted",
    ),
    "signed inside": (
        f"{MIXED}\n--b\nContent-Type: multipart/signed; boundary=c\n\n--c\n\nü\n--c--\n--b--\n",
        "its part of type multipart/signed has 8-bit content",
    ),
    "status": (
        f"{MIXED}\n--b\nContent-Type: message/delivery-status\n\nü\n--b--\n",
        "its part of type message/delivery-status",
    ),
    "in base64": (f"{MIME}{NAMES['base64']}\nü\n", "a part in base64 has 8-bit content"),
    "in quoted-printable": (f"{MIME}{NAMES['qp']}\nü\n", "a part in quoted-printable has 8-bit content"),
    "unknown encoding": (f"{MIME}Content-Transfer-Encoding: x-uuencode\n\nü\n", "a part has an unknown Content-Transfer"),
    "empty encoding": (f"{MIME}Content-Transfer-Encoding:\n\nü\n", "a part has an unknown Content-Transfer"),
    "encoded parts": (f"{MIXED}{NAMES['base64']}\n--b\n\nü\n", "a part that has parts is encoded as a whole"),
    "one boundary, whole and in pieces": (
        f"{MIME}Content-Type: multipart/mixed; boundary*0=b; boundary*=utf-8''b\n\n--b\n\nü\n",
        "a multipart has no usable boundary",
    ),
    "no boundary": (f"{MIME}Content-Type: multipart/mixed\n\n--b\n\nü\n", "a multipart has no usable boundary"),
    "long boundary": (f"{MIME}Content-Type: multipart/mixed; boundary={'b' * 201}\n\nü\n", "a multipart has no usable"),
    "same boundary": (f"{MIXED}\n--b\n{MIXED}\n--b\n\nü\n", "two multiparts within each other have the same boundary"),
    "before": (f"{MIXED}\nü\n--b\n\nx\n--b--\n", "it has 8-bit bytes outside of its parts"),
    "behind": (f"{MIXED}\n--b\n\nx\n--b--\nü\n", "it has 8-bit bytes outside of its parts"),
    "no header": ("not a field\n\nü\n", "a header has a line that is no field"),
    "bare CR": ("Subject: a\rb\n\nü\n", "it has a bare CR or LF"),
    "bare LF": ("Subject: a\n\nü\x0b\n", "it has a bare CR or LF"),
    "CR at the end": ("Subject: a\n\nü\r", "it has a bare CR or LF"),
    "cut header": ("Subject: a\n", "it ends within a header"),
    "cut part": (f"{MIXED}\n--b\nX: y\n--b--\n\n", "a part ends within its header"),
    "two types": (f"{MIXED}Content-Type: text/plain\n\nü\n", "a header has two fields Content-Type"),
    "long type": (f"Content-Type: text/plain; x={'y' * 4000}\n\nü\n", "a Content-Type field has 40"),
    "long header": (f"Subject: {'x' * MAX_HEADER}\n\nü\n", f"a header is larger than {MAX_HEADER} bytes"),
    "endless header": (f"Subject: {'x' * 3 * MAX_HEADER}", f"a header is larger than {MAX_HEADER} bytes"),
    "many parts": (f"{MIXED}\n" + "--b\n\nü\n" * MAX_PARTS, f"it has more than {MAX_PARTS} parts"),
    "deep messages": (f"{MIME}Content-Type: message/rfc822\n\n" * 10_000 + "ü\n", f"nested more than {MAX_DEPTH} deep"),
    "deep parts": (
        "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(10_000)),
        f"its parts are nested more than {MAX_DEPTH} deep",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_converted_without_doubt_is_refused(name: str) -> None:
    text, why = REFUSED[name]
    status, said = why_not(lines(text).replace(b"\x0b", b"\n"))
    assert status == b"5.6.3"
    assert why.encode() in said


@pytest.mark.parametrize("where", ["Subject: ü\n", f"{MIME}Content-Disposition: attachment; filename=ü\n"])
def test_8_bit_bytes_in_a_header_are_refused_with_a_status_of_their_own(where: str) -> None:
    assert why_not(lines(f"{where}\nx\n")) == (b"5.6.9", b"a header has bytes above 127")
    assert why_not(lines(f"{MIXED}\n--b\n{where}\nx\n--b--\n"))[0] == b"5.6.9"


def test_a_result_that_is_another_message_is_not_proved() -> None:
    message = lines(
        f"{MIXED}\n--b\nContent-Type: text/plain\n\nGrüße and more of this text\n--b\n{NAMES['8bit']}\nx\n--b--\n"
    )
    plan = plan_of(message)
    assert isinstance(plan, Plan)
    result = by_plan(message, plan)
    assert is_proved(plan, result)
    for old, new in [
        (b"and", b"und"),
        (b"7bit", b"8bit"),
        (b"--b--", b"--c--"),
        (b"x\r\n", b"\xff\r\n"),
        (b"Content-Type: text/plain", b"Content-Type: text/html"),
        (b"printable", b"x"),
        (b"--b\r\n", b"--b\r\n\r\n--b\r\n"),
        (b"\r\n\r\n", b"\r\n"),
    ]:
        assert old in result
        assert not is_proved(plan, result.replace(old, new)), old
    assert not is_proved(plan, b"")


def test_no_boundary_is_compiled_into_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of multiparts, dozens around each other: a pattern of their boundaries for each would take seconds."""
    compiled: list[object] = []
    compile_pattern = re.compile

    def note(*arguments: Any) -> re.Pattern[Any]:
        compiled.append(arguments)
        return compile_pattern(*arguments)

    headers = [f'Content-Type: multipart/mixed; boundary="{number:04}"\n\n' for number in range(MAX_PARTS - 60)]
    outer = "".join(f"{header}--{number:04}\n" for number, header in enumerate(headers[: MAX_DEPTH - 2]))
    message = lines(MIME + outer + f"--{MAX_DEPTH - 3:04}\n".join(headers[MAX_DEPTH - 2 :]))
    plan_of(message)  # the standard library compiles what it needs itself
    monkeypatch.setattr(re, "compile", note)
    assert isinstance(plan_of(message), Plan)
    assert not compiled


def test_a_message_with_more_parts_than_were_measured_is_refused() -> None:
    plan = plan_of(lines(MIME + "{8bit}".format(**NAMES) + "\nü\n"))
    assert isinstance(plan, Plan)
    with pytest.raises(NotConvertible):
        by_plan(lines(MIXED + "\n--b\n\na\n--b--\n"), plan)
