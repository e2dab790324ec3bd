"""The young index counts its entries by area, whatever becomes of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from tests.fakes.shares import Most

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "settle", "move", "take", "give_back")),
        st.integers(1, 4),
        st.integers(1, 3),
        st.sampled_from((None, *Area)),
    ),
    max_size=40,
)


def message(number: int) -> Message:
    return Message(SpoolId(number), b"a@b", b"-", False, 0.0, 10, 3, [])


@given(STEPS)
def test_every_area_counts_what_stands_in_it(steps: list[tuple[str, int, int, Area | None]]) -> None:
    index = Memtable()
    for step, spool_id, number, area in steps:
        young = index.messages.get(SpoolId(spool_id))
        if step == "take":
            index.room_again()
            index.take(area or Area.INCOMING, number, 10.0, Most(2))
        elif step == "add" and young is None:
            young = JournaledMessage(message(spool_id))
            young.entries = {
                each: Entry(each, b"r", area or Area.INCOMING, float(each * 5)) for each in range(1, number + 1)
            }
            index.add(young, 10.0)
        elif young is not None and step == "move":
            index.move(young, number)
        elif young is not None and step == "settle":
            if area is None:
                if number in young.entries:
                    index.end(young, [number])
            else:
                index.replace(young, Entry(number, b"r", area, 20.0), 10.0)
        standing = [entry.area for young in index.messages.values() for entry in young.entries.values()]
        assert {area: index.count_in(area) for area in Area} == {area: standing.count(area) for area in Area}
        assert index.entry_count == len(standing)
