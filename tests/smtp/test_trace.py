"""The trace field: what was written is read, and nothing that another wrote."""

from __future__ import annotations

import pytest

from mailismus.smtp.trace import CameIn, read_received, received_opening

NAME = b"0000000100000001"
TLS = b"TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256 bits)"
END = b";\r\n\tMon, 21 Sep 2026 14:13:20 +0000\r\n"


def field(protocol: bytes, tls: bytes = b"", name: bytes = b"c.example") -> bytes:
    return received_opening(name, b"[IPv6:2001:db8::1]", b"mx.example", protocol, tls) + NAME + END


@pytest.mark.parametrize("name", [b"c.example", b"[192.0.2.1]", b"a (using b) by c with ESMTPS id 0", b"\xff"])
@pytest.mark.parametrize(("protocol", "tls"), [(b"SMTP", b""), (b"ESMTP", b""), (b"ESMTPS", TLS), (b"ESMTPSA", TLS)])
def test_what_was_written_is_read(name: bytes, protocol: bytes, tls: bytes) -> None:
    assert read_received(field(protocol, tls, name) + b"Subject: x\r\n", NAME) == CameIn(protocol, tls)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Subject: x\r\n" + field(b"ESMTPS", TLS),
        b"\r\n" + field(b"ESMTPS", TLS),
        field(b"ESMTPS", TLS).replace(NAME, b"0000000100000002"),
        field(b"ESMTPS", TLS).replace(NAME, NAME + b"0"),
        field(b"ESMTPS", TLS)[:60],
        b"Received: from c.example by mx.example with ESMTPS id " + NAME + END,
    ],
)
def test_of_other_fields_nothing_is_read(header: bytes) -> None:
    assert read_received(header, NAME) is None
