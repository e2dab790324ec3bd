"""Peers that misbehave, all at once, on real sockets beside a good one: the whole server, its log and its queue."""

from __future__ import annotations

import json
import re
import smtplib
import subprocess
import sys
import time
from pathlib import Path

import attrs

from tests.fakes.evil import Doing, Sinks, deaf, drip, flood, late, leave_after
from tests.fakes.sink import Act, Ahead, Script
from tests.project.runners import ROOT, environment
from tests.scenarios.mailserver import MailServer, configure, serving

TIMEOUT_S = 3
SMALL = b"Subject: s\r\n\r\n..dot\r\nx\r\n"
LARGE = b"Subject: s\r\n\r\n" + (b"x" * 70 + b"\r\n") * 50_000
HUGE = b"Subject: s\r\n\r\n" + (b"x" * 70 + b"\r\n") * 200_000
"""More than the kernel keeps for a peer that does not read: the final dot waits."""
EIGHTBIT = b"Subject: caf\xe9\r\n\r\nx\r\n"
GO = b"354 go\r\n"


@attrs.frozen
class Peer:
    """What a peer does, and what becomes of the message for it."""

    script: Script
    status: str
    text: str
    content: bytes = SMALL
    ahead: Ahead = Ahead.TAKE


def deferred(step: str, action: bytes | Act | Doing, text: str, content: bytes = SMALL) -> Peer:
    return Peer({step: action}, "deferred", text, content)


def sent(script: Script, ahead: Ahead = Ahead.TAKE) -> Peer:
    return Peer(script, "sent", "250 2.0.0 Ok: queued", ahead=ahead)


def bounced(script: Script, text: str, content: bytes = SMALL) -> Peer:
    return Peer(script, "bounced", text, content)


STEPS = ("greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot")
LOST = dict.fromkeys(("greeting", "EHLO"), "while the session was set up")
LOST |= {"MAIL": "before the reply to MAIL", "RCPT": "before the reply to RCPT or DATA"}
LOST |= {"DATA": LOST["RCPT"], "dot": "after the final dot: the message may have been sent"}

PEERS: dict[str, Peer] = {
    **{f"closes at {step}": deferred(step, Act.CLOSE, f"451 4.4.2 connection lost {LOST[step]}") for step in STEPS},
    **{f"resets at {step}": deferred(step, Act.ABORT, f"451 4.4.2 connection lost {LOST[step]}") for step in STEPS},
    "resets at greeting": deferred("greeting", Act.ABORT, "451 4.4."),  # the kernel may tell it as a failed connect
    **{f"is silent at {step}": deferred(step, Act.SILENCE, f"451 4.4.2 timed out {LOST[step]}") for step in STEPS},
    **{f"drips at {step}": deferred(step, drip(b"2", b"5", 0.3), f"451 4.4.2 timed out {LOST[step]}") for step in STEPS},
    **{f"endless nonsense at {step}": deferred(step, flood(b"250x\r\n"), "what came is no reply") for step in STEPS},
    **{f"an endless line at {step}": deferred(step, flood(b"250 "), "reply line too long") for step in STEPS},
    **{f"an endless reply at {step}": deferred(step, flood(b"250-x\r\n"), "reply of too many lines") for step in STEPS},
    **{f"a megabyte at {step}": deferred(step, b"250 " + b"x" * (1 << 20) + b"\r\n", "too long") for step in STEPS},
    **{f"NULs at {step}": deferred(step, b"\0" * 500 + b"\r\n", "what came is no reply") for step in STEPS},
    **{f"421 at {step}": deferred(step, b"421 4.3.2 bye\0\x1b[2J\xff\r\n", "421 4.3.2 bye??[2J?") for step in STEPS},
    **{f"goes at {size} bytes": deferred("DATA", leave_after(GO, size), "connection lost", LARGE) for size in (1, 500_000)},
    "552 in the middle of the content": deferred("DATA", leave_after(GO, 99_000, b"552 big\r\n"), "451 4.4.2", HUGE),
    "stops reading": deferred("DATA", deaf(GO), "451 4.4.2 timed out while the message was sent", HUGE),
    "250 to DATA": deferred("DATA", b"250 ok\r\n", "451 4.4.2 unexpected reply to DATA"),
    "250 before DATA": deferred("MAIL", b"250 ok\r\n" * 3, "came before its command"),
    "all replies at once": deferred("MAIL", b"250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n", "came before its command"),
    "354 to MAIL": deferred("MAIL", GO, "unexpected reply to MAIL"),
    "354 to the dot": deferred("dot", GO, "unexpected reply to the final dot"),
    "another protocol": deferred("greeting", b"SSH-2.0-OpenSSH_9.2\r\n", "what came is no reply"),
    "refuses everybody": deferred(
        "greeting", b"554 5.7.1 go away\r\n", "451 4.7.1 host refused the session: 554 5.7.1 go away"
    ),
    "refuses EHLO and HELO": Peer(
        {"EHLO": b"550 no\r\n", "HELO": b"550 no\r\n"}, "deferred", "host refused the session: 550 no"
    ),
    "nobody accepted and 354": bounced({"RCPT": b"550 5.1.1 no\r\n", "DATA": GO}, "550 5.1.1 no"),
    "503 whatever one does": bounced({"RCPT": b"503 5.5.1 no\r\n"}, "503 5.5.1 no"),
    "controls and 8-bit in a refusal": bounced(
        {"dot": b"554-5.7.1 \0\x1b[31m\r\n554 5.7.1 \xff\xfe\r\n"}, "554 5.7.1 ??[31m ??"
    ),
    "a refusal of 100 kB": bounced({"dot": b"550-" + b"y" * 1000 + b"\r\n" + b"550 z\r\n"}, "550 " + "y" * 990),
    "no 8BITMIME": bounced({"EHLO": b"250 mx\r\n"}, "554 5.6.3 the message has 8-bit content", EIGHTBIT),
    "no EHLO, so no 8BITMIME": bounced({"EHLO": b"500 what\r\n"}, "554 5.6.3 the message has 8-bit content", EIGHTBIT),
    "a size it does not take": bounced({"EHLO": b"250-mx\r\n250 SIZE 1000000\r\n"}, "552 5.3.4 the message of 36", LARGE),
    "EHLO refused": sent({"EHLO": b"502 5.5.2 what?\r\n"}),
    "a long and late greeting": sent(
        {"greeting": late(b"220-\0\xff" * 200 + b"\r\n" + b"220-x\r\n" * 90 + b"220 mx\r\n", 0.5)}
    ),
    "more replies behind the last": sent({"dot": b"250 2.0.0 Ok: queued\r\n250 ok\r\n250 ok\r\n"}),
    "a flood behind the last reply": sent({"dot": drip(b"250 2.0.0 Ok: queued\r\n", b"x" * 9000, 0.01)}),
    "a flood at QUIT": sent({"QUIT": flood(b"221 bye\r\n")}),
    "pipelining refused": sent({}, Ahead.REFUSE),
    "pipelining ends the connection": sent({}, Ahead.CLOSE),
    "pipelining dropped": sent({}, Ahead.DROP),
    "pipelining hangs": sent({}, Ahead.HANG),
}
GOOD = 100


def said(server: MailServer, words: str, count: int) -> str:
    """The log, once it holds these words so often, and no more often."""
    deadline = time.monotonic() + 60
    text = ""
    while (text.count(words) < count or not text.endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.05)
        text = server.output.read_text("latin-1")
    assert text.count(words) == count
    return text


def outcomes(server: MailServer, count: int) -> dict[str, str]:
    """The lines of the log that tell an outcome, by recipient, once there are so many."""
    lines = [line for line in said(server, "status=", count).splitlines() if "status=" in line]
    found = {line.partition("to=<")[2].partition(">")[0]: line for line in lines}
    assert len(found) == len(lines) == count
    return found


def queued(server: MailServer) -> dict[str, tuple[str, int, str]]:
    """Area, attempts and reason of what is in the queue, by recipient."""
    command = [
        sys.executable,
        "-m",
        "mailismus",
        "--config",
        str(server.directory / "mailismus.xml"),
        "queue",
        "list",
        "--json",
    ]
    ran = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, check=True, timeout=60)
    return {
        entry["address"]: (found["queue_name"], entry["attempts"], entry.get("delay_reason") or entry["bounce_reason"])
        for line in ran.stdout.splitlines()
        for found in [json.loads(line)]
        for entry in found["recipients"]
    }


def settled(server: MailServer) -> dict[str, tuple[str, int, str]]:
    """The same, once what the log says of each entry is durable: on a slow disk that comes later."""
    for _ in range(60):
        entries = queued(server)
        if all(attempts for _, attempts, _ in entries.values()):
            break
    return entries


def test_peers_that_misbehave_hurt_their_own_mail_alone(tmp_path: Path) -> None:
    sinks = Sinks()
    good = sinks.add()
    ports = {f"d{number}.example": sinks.add(peer.script, peer.ahead) for number, peer in enumerate(PEERS.values())}
    names = dict(zip(ports, PEERS, strict=True))
    relays = f'<relay address="127.0.0.1:{good}"/>' + "".join(
        f'<relay address="127.0.0.1:{port}" destdomains="{domain}"/>' for domain, port in ports.items()
    )
    client = f"<timeout>{TIMEOUT_S}s</timeout><timeout_final>{TIMEOUT_S}s</timeout_final><eightbit>bounce</eightbit>"
    configure(
        tmp_path,
        ssl="",
        more="",
        server="<relay_clients>127.0.0.1</relay_clients>",
        deliver=f"<relays>{relays}</relays><client>{client}</client>",
        report="<delay_start>1h</delay_start>",
    )
    with sinks, serving(tmp_path) as server:
        with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=30) as submitting:
            every = max(1, GOOD // len(ports))
            goods = 0
            for domain, peer in zip(ports, PEERS.values(), strict=True):
                submitting.sendmail("s@far.example", [f"r@{domain}"], re.sub(rb"(?m)^\.\.", b".", peer.content))
                for _ in range(every):
                    goods += 1
                    submitting.sendmail("s@far.example", [f"r{goods}@good.example"], SMALL)
        lines = outcomes(server, goods + len(PEERS))
        entries = settled(server)
        assert server.resident_kb() < 200_000
        broken = sum(peer.ahead is not Ahead.TAKE for peer in PEERS.values())
        text = said(server, "Nothing is sent ahead to 127.0.0.1[127.0.0.1]:", broken)  # when their sessions end
    wrong = []
    for domain, name in names.items():
        peer, line = PEERS[name], lines[f"r@{domain}"]
        taken = sinks.factories[ports[domain]].acknowledged()
        area, attempts, reason = entries.pop(f"r@{domain}", ("", 1, peer.text))
        if (
            f"status={peer.status} (" not in line
            or peer.text not in line
            or peer.text[:200] not in reason
            or (area, attempts) != ({"sent": "", "deferred": "deferred", "bounced": "bounces"}[peer.status], 1)
            or (len(taken) == 1) is not (peer.status == "sent" or ("may have been sent" in line and bool(taken)))
            or not reason.isascii()
            or not reason.isprintable()
            or len(line) > 1400
        ):
            wrong.append((name, line, area, attempts, reason, taken))
    assert not wrong, "\n".join(map(str, wrong))
    assert not entries
    assert sorted(sinks.factories[good].acknowledged()) == sorted(
        b"r%d@good.example" % number for number in range(1, goods + 1)
    )
    slowest_s = max(
        float(re.findall(r" delay=([0-9.]+)", lines[f"r{number}@good.example"])[0]) for number in range(1, goods + 1)
    )
    assert slowest_s < TIMEOUT_S
    assert "\0" not in text
    assert "\x1b" not in text
    lone = sinks.factories[ports[next(domain for domain in names if names[domain] == "nobody accepted and 354")]]
    assert [(message.recipients, message.content) for message in lone.received] == [([], b"")]
