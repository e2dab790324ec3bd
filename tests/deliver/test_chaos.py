"""Relays that misbehave at random: every entry has one fate, and what is told of it is true."""

from __future__ import annotations

import random

import pytest

from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, relay
from tests.fakes.sink import Act, Action, Ahead, Script, Sink

STEPS = ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot", "RSET"]
TWICE = b"250 ok\r\n250 ok\r\n"
WRONG: list[Action] = [
    b"421 4.3.2 bye\r\n",
    b"450 4.2.0 later\r\n",
    b"550 5.1.1 never\r\n",
    b"452 4.5.3 too many recipients\r\n",
    b"503 5.5.1 bad sequence\r\n",
    b"354 go\r\n",
    TWICE,
    b"what?\r\n",
    b"25",
    b"250-more\r\n" * 200,
    Act.CLOSE,
    Act.ABORT,
]


def misbehaving(dice: random.Random, share: float, ahead: Ahead) -> Script:
    """`share` of the replies are wrong. Who drops commands and says 250 all the same tells a lie that nobody can see: none
    does both."""
    wrong = [action for action in WRONG if ahead in (Ahead.TAKE, Ahead.REFUSE) or action is not TWICE]

    def at(step: str) -> Script:
        def answer(sink: Sink) -> Action:
            return dice.choice(wrong) if dice.random() < share else right[step]

        return {step: answer}

    right: dict[str, Action] = {
        "greeting": b"220 sink\r\n",
        "EHLO": b"250-sink\r\n250 PIPELINING\r\n",
        "MAIL": b"250 2.1.0 ok\r\n",
        "RCPT": b"250 2.1.5 ok\r\n",
        "DATA": b"354 go\r\n",
        "dot": b"250 2.0.0 ok\r\n",
        "RSET": b"250 2.0.0 ok\r\n",
    }
    script: Script = {}
    for step in STEPS:
        script.update(at(step))
    return script


@pytest.mark.parametrize("seed", range(40))
def test_every_entry_has_one_fate_and_it_is_true(seed: int) -> None:
    dice = random.Random(seed)
    bench = Bench(
        relay("192.0.2.1"),
        relay("192.0.2.2", 25, b"good.example"),
        queuecache=dice.choice([20, 100, 2500]),
        maxserverconnections=dice.choice([1, 3, 20]),
        maxmessages=dice.choice([1, 5, 100]),
        maxrecips=dice.choice([1, 3, 50]),
        client_timeout_s=3.0,
        client_timeout_final_s=4.0,
        client_maxpipeline=dice.choice([1, 2, 3, 25]),
        large_bytes=dice.choice([10, 1 << 17]),
    )
    bench.network.latency_s = dice.choice([0.0, 0.003])
    ahead = dice.choice([Ahead.TAKE, *Ahead])
    bad, good = bench.sink(misbehaving(dice, dice.choice([0.02, 0.1, 0.3]), ahead)), bench.sink(host="192.0.2.2")
    bad.ahead = ahead
    bench.task.start()
    number = 0
    everyone: list[bytes] = []
    for _ in range(60):
        recipients = []
        for _ in range(dice.choice([1, 1, 1, 4])):
            number += 1
            recipients.append(b"r%d@%b.example" % (number, dice.choice([b"bad", b"bad", b"good"])))
        everyone += recipients
        bench.put(*recipients)
        if dice.random() < 0.3:
            bench.run(dice.choice([0.01, 0.1]), 0.01)
    bench.run(500, 0.5)
    told = {line.partition(b"to=<")[2].partition(b">")[0]: line for line in bench.lines()}
    assert len(bench.lines()) == len(told) == len(everyone)
    assert bench.task.held == 0
    assert bench.count(Area.INCOMING) == 0
    assert sorted(good.acknowledged()) == sorted(name for name in everyone if b"good" in name)
    acknowledged = bad.acknowledged()
    for name, line in told.items():
        if b"good" in name:
            assert b"status=sent" in line
        elif b"status=sent" in line:
            assert acknowledged.count(name) == 1
        else:
            assert name not in acknowledged or b"may have been sent" in line
    assert bench.task.sessions.schedule.pool.open == 0 or bench.task.sessions.open > 0
