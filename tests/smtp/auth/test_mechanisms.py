"""The mechanisms, by the examples of their RFCs."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.saslprep import Unfit, prepare
from mailismus.smtp.auth.cram_md5 import CramMd5
from mailismus.smtp.auth.login import Login
from mailismus.smtp.auth.mechanism import NO_MORE, ChallengeFault, ChallengeFaultKind, Derivation, Keys
from mailismus.smtp.auth.plain import Plain
from mailismus.smtp.auth.response import decode, encode, join, wipe
from mailismus.smtp.auth.scram import ChannelBinding, Scram, derive_keys
from mailismus.smtp.auth.xoauth2 import Xoauth2


def said(response: object) -> object:
    """A response as bytes, other steps as they are."""
    return bytes(response) if isinstance(response, bytearray) else response


RFC5802 = ("sha1", b"fyko+d2lbbFgONRv9qkxdawL", b"3rfcNHYJY1ZVvWVs7j", b"QSXCR+Q6sek8bf92")
RFC7677 = ("sha256", b"rOprNGfwEbeRWgbNEkqO", b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"W22ZaJ0SNY7soEsUEjb6gQ==")


@pytest.mark.parametrize(
    ("vector", "proof", "signature"),
    [
        (RFC5802, b"v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", b"rmF9pqV8S7suAoZWja4dJRkFsKQ="),
        (RFC7677, b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
    ],
)
def test_scram_gives_the_messages_of_its_rfc(
    vector: tuple[str, bytes, bytes, bytes], proof: bytes, signature: bytes
) -> None:
    hash_name, nonce, more, salt = vector
    mechanism = Scram(b"user", bytearray(b"pencil"), nonce, hash_name=hash_name)
    assert mechanism.begin() == b"n,,n=user,r=" + nonce
    derivation = mechanism.respond(b"r=%b%b,s=%b,i=4096" % (nonce, more, salt))
    assert derivation == Derivation(hash_name, base64.b64decode(salt), 4096)
    keys = derive_keys(prepare(mechanism.secret), derivation)
    assert mechanism.use_keys(keys) == b"c=biws,r=%b%b,p=%b" % (nonce, more, proof)
    assert not mechanism.is_proved
    assert said(mechanism.respond(b"v=" + signature)) == b""
    assert mechanism.is_proved
    assert mechanism.respond(b"v=" + signature) == NO_MORE


def test_cram_md5_gives_the_response_of_rfc_2195() -> None:
    mechanism = CramMd5(b"tim", bytearray(b"tanstaaftanstaaf"))
    challenge = b"<1896.697170952@postoffice.reston.mci.net>"
    assert said(mechanism.respond(challenge)) == b"tim b913a602c7eda7a495b4e6e7334d3890"
    assert mechanism.respond(challenge) == NO_MORE


def test_an_empty_challenge_of_cram_md5_gets_no_response() -> None:
    fault = CramMd5(b"tim", bytearray(b"secret")).respond(b"")
    assert isinstance(fault, ChallengeFault)
    assert fault.kind is ChallengeFaultKind.SENSELESS


def test_plain_gives_the_response_of_rfc_4954() -> None:
    mechanism = Plain(b"test", bytearray(b"1234"))
    assert encode(mechanism.begin()) == b"AHRlc3QAMTIzNA=="  # RFC 4954 4.1, without its identity to act as
    assert mechanism.respond(b"") == NO_MORE


def test_login_gives_the_name_then_the_password_then_nothing() -> None:
    mechanism = Login(b"joe", bytearray(b"secret"))
    assert mechanism.begin() is None  # type: ignore[func-returns-value]  # that is what is tested
    assert [mechanism.respond(challenge) for challenge in (b"User Name\0", b"Username:", b"")] == [
        b"joe",
        b"secret",
        NO_MORE,
    ]


def test_xoauth2_gives_the_example_of_its_description() -> None:
    mechanism = Xoauth2(b"someuser@example.com", bytearray(b"ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg"))
    assert encode(mechanism.begin()) == (
        b"dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJoZG1semRHRXVZMjl0Q2cBAQ=="
    )
    assert said(mechanism.respond(b'{"status":"401"}')) == b""
    assert mechanism.respond(b"") == NO_MORE


# ---------------------------------------------------------------------- the details of SCRAM


def test_the_header_says_whether_the_channel_could_be_bound() -> None:
    binding = ChannelBinding(b"tls-exporter", b"\0" * 32)
    flags = [
        bytes(mechanism.begin()).partition(b",,")[0]
        for mechanism in (
            Scram(b"u", bytearray(b"p"), b"N"),
            Scram(b"u", bytearray(b"p"), b"N", could_bind=True),
            Scram(b"u", bytearray(b"p"), b"N", binding),
        )
    ]
    assert flags == [b"n", b"y", b"p=tls-exporter"]


def test_the_binding_is_in_the_proof() -> None:
    mechanism = Scram(b"u", bytearray(b"p"), b"N", ChannelBinding(b"tls-server-end-point", b"digest"))
    assert mechanism.name == "SCRAM-SHA-256-PLUS"
    assert isinstance(mechanism.respond(b"r=Nmore,s=c2FsdA==,i=4096"), Derivation)
    final = bytes(mechanism.use_keys(Keys(b"k" * 32, b"s" * 32)))
    assert final.startswith(b"c=" + base64.b64encode(b"p=tls-server-end-point,,digest") + b",r=Nmore,p=")


def test_commas_and_equal_signs_of_a_name_are_escaped() -> None:
    assert Scram(b"a=b,c", bytearray(b"p"), b"N").begin() == b"n,,n=a=3Db=2Cc,r=N"


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"r=N,s=c2FsdA==,i=4096",  # nothing of its own
        b"r=Xmore,s=c2FsdA==,i=4096",
        b"m=new,r=Nmore,s=c2FsdA==,i=4096",  # a mandatory extension
        b"r=Nmore,s=,i=4096",
        b"r=Nmore,s=c2Fsd,i=4096",
        b"r=Nmore,s=%b,i=4096" % base64.b64encode(b"x" * 1025),
        b"r=Nmore,s=c2FsdA==,i=4095",
        b"r=Nmore,s=c2FsdA==,i=1000001",
        b"r=Nmore,s=c2FsdA==,i=" + b"9" * 500,
        b"r=Nmore,s=c2FsdA==,i=-1",
        b"r=Nmore,s=c2FsdA==",
        b"r=N\x00more,s=c2FsdA==,i=4096",
        b"e=no-resources",
    ],
)
def test_a_first_message_that_makes_no_sense_is_a_fault(first: bytes) -> None:
    fault = Scram(b"u", bytearray(b"p"), b"N").respond(first)
    assert isinstance(fault, ChallengeFault)
    assert fault.kind is ChallengeFaultKind.SENSELESS


@pytest.mark.parametrize("first", [b"r=Nmore,s=c2FsdA==,i=4096,x=1", b"r=Nmore,s=c2FsdA==,i=1000000"])
def test_other_extensions_and_high_counts_are_good(first: bytes) -> None:
    assert isinstance(Scram(b"u", bytearray(b"p"), b"N").respond(first), Derivation)


@pytest.mark.parametrize("final", [b"", b"v=", b"v=AAAA", b"v=!", b"x=1", b"v=" + base64.b64encode(b"\0" * 32)])
def test_a_wrong_signature_proves_nothing(final: bytes) -> None:
    mechanism = Scram(b"u", bytearray(b"p"), b"N")
    mechanism.respond(b"r=Nmore,s=c2FsdA==,i=4096")
    mechanism.use_keys(Keys(b"k" * 32, b"s" * 32))
    fault = mechanism.respond(final)
    assert isinstance(fault, ChallengeFault)
    assert fault.kind is ChallengeFaultKind.UNPROVED
    assert not mechanism.is_proved


def test_an_error_of_the_server_proves_nothing_and_gets_an_empty_response() -> None:
    mechanism = Scram(b"u", bytearray(b"p"), b"N")
    mechanism.respond(b"r=Nmore,s=c2FsdA==,i=4096")
    mechanism.use_keys(Keys(b"k" * 32, b"s" * 32))
    assert said(mechanism.respond(b"e=invalid-proof")) == b""
    assert not mechanism.is_proved


@given(st.text(min_size=1, max_size=20), st.binary(min_size=1, max_size=40), st.integers(4096, 4100))
def test_a_server_that_knows_the_password_accepts_the_proof(password: str, salt: bytes, iterations: int) -> None:
    """The server's side of RFC 5802 3, written down from the formulas."""
    try:
        prepared = prepare(password.encode("utf-8", "surrogatepass"))
    except Unfit:
        return
    if not prepared:
        return
    salted = hashlib.pbkdf2_hmac("sha256", prepared, salt, iterations)
    stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server_first = b"r=NSERVER,s=%b,i=%d" % (base64.b64encode(salt), iterations)
    mechanism = Scram(b"u", bytearray(password.encode()), b"N")
    derivation = mechanism.respond(server_first)
    assert isinstance(derivation, Derivation)
    final, _, proof = bytes(mechanism.use_keys(derive_keys(prepare(mechanism.secret), derivation))).rpartition(b",p=")
    message = b",".join((b"n=u,r=N", server_first, final))
    mask = hmac.digest(stored_key, message, "sha256")
    client_key = bytes(one ^ other for one, other in zip(base64.b64decode(proof), mask, strict=True))
    assert hashlib.sha256(client_key).digest() == stored_key
    signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
    assert said(mechanism.respond(b"v=" + base64.b64encode(signature))) == b""


# ---------------------------------------------------------------------- SASLprep, base64, overwriting


@pytest.mark.parametrize(
    ("text", "form"),
    [  # RFC 4013 3
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("p\u00e4ss w\u00f6rt", "p\u00e4ss w\u00f6rt"),
        ("\u0627\u0628", "\u0627\u0628"),
    ],
)
def test_saslprep_gives_the_examples_of_rfc_4013(text: str, form: str) -> None:
    assert prepare(text.encode()) == form.encode()


@pytest.mark.parametrize("text", [b"\x07", b"\xd8\xa7\x31", b"\xff", "\u0221".encode(), "\ue000".encode(), b"a\x7f"])
def test_saslprep_refuses_what_rfc_4013_does(text: bytes) -> None:
    with pytest.raises(Unfit) as refused:
        prepare(text)
    assert text.decode("utf-8", "replace") not in str(refused.value)


@given(st.binary(max_size=200))
def test_base64_is_that_of_the_standard_library(data: bytes) -> None:
    assert encode(data) == base64.b64encode(data)
    assert decode(bytes(encode(data))) == data


@pytest.mark.parametrize("text", [b"A", b"AA", b"AA=", b"AA==\n", b"A A=", b"\xff\xff\xff\xff", b"AA==AA==", b"===="])
def test_what_is_no_base64_is_not_decoded(text: bytes) -> None:
    assert decode(text) is None


def test_wiping_overwrites_the_bytes_in_their_place() -> None:
    data = join(b"se", bytearray(b"cret"))
    with memoryview(data) as view:
        with pytest.raises(BufferError):  # it can't be emptied while it is looked at
            wipe(data)
        assert bytes(view) == bytes(6)
    wipe(data)
    assert not data
