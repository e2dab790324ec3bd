"""What is said over the admin socket: lines of JSON (pure).

The server greets with `{"hello": "mailismus", "protocol": 2}`. The client sends one request,
`{"protocol": 2, "verb": "list", "filter": [WORD, ...], "limit": N or null}`. Then come answer lines, and at last
`{"end": true}` or `{"error": TEXT, "status": EXIT CODE}`. A connection that closes before either was cut off. Where an
answer lacks only what can't be read, the error says what that is, and has `"gaps": [[WHAT, REASON, COUNT, PATH], ...]`.
Between two lines may stand `{"working": true}`: the next one takes long, for the server leaves most of its time to mail.

| verb | answer lines |
|---|---|
| `list` | messages with their matching entries; why they wait or where they are, as far as the server knows, in `stuck` |
| `entries` | as `list`, without why they wait |
| `why` (of an id, an address or a domain) | as `list`, of each entry, also in `holds`; or what is `known` of a domain |
| `count` | one line of counts |
| `plan` | the plan by which the client counts everything itself: its provider, then parts for that provider's counter |
| `content` (the filter names one message) | its content in pieces, in order, as it is stored |
| `flush` | one line: how many deferred entries are due now |
| `overview` (of the server; a domain in the filter: and what is known of it) | one line (`protocol.overview`) |
| `settings` | the effective values of the running server, a line each (`protocol.settings`) |
| `shape` (the request says `"by": "domain"`, `"host"` or `"sender"`) | one line of counts for all others, then one a row |
| `servers` | the servers that share the queue, a line each (`protocol.servers`) |
| `preview`, `act`, `acts`, `undo`, `resume` | of acts on the queue: see `protocol.acting` |

*Rules*: bytes travel as text of the same code points (`fields`), content in base64, so that any byte comes through. Both
ends speak the same protocol number or refuse.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping, Sequence

import attrs

from mailismus.admin.model.left_out import left_out
from mailismus.admin.model.noted import Known, NotedEntry
from mailismus.admin.protocol.fields import bytes_of, encode_bytes, list_of, number_of, whole_of
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, AreaCount, Entry, Gap, Message, Summary
from mailismus.queue.waiting import Waiting

PROTOCOL = 2
MAX_REQUEST_BYTES = 64 << 10
HELLO = {"hello": "mailismus", "protocol": PROTOCOL}
END = {"end": True}
WORKING = {"working": True}


class WireError(ValueError):
    """The other end does not speak this protocol; the message tells how."""


@attrs.frozen
class Request:
    """One request. `limit` None: all entries."""

    verb: str
    words: tuple[str, ...] = ()
    limit: int | None = None
    by: str = ""
    """For `shape` alone: the meaning of the rows."""
    order: Mapping[str, object] = attrs.field(factory=dict)
    """For acts alone: what is ordered (`protocol.acting`)."""


@attrs.frozen
class Refusal(Exception):
    """A request without an answer: the exit code, and the text for the user."""

    status: int
    text: str

    def __str__(self) -> str:
        return self.text


def encode(value: Mapping[str, object]) -> bytes:
    """Return one line, its end included."""
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, object]:
    """Return the object of a line. Raises `WireError`."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError("a line is not JSON") from None
    if not isinstance(value, dict):
        raise WireError("a line is no JSON object")
    return value


def encode_request(request: Request) -> bytes:
    value: dict[str, object] = {"protocol": PROTOCOL, "verb": request.verb, "filter": request.words, "limit": request.limit}
    if request.by:
        value["by"] = request.by
    if request.order:
        value["order"] = request.order
    return encode(value)


def decode_request(line: bytes) -> Request:
    """Return the request of a line. Raises `WireError`."""
    value = decode(line)
    if value.get("protocol") != PROTOCOL:
        raise WireError(f"the server speaks protocol {PROTOCOL}: use the command of the version that runs")
    verb, words, limit, by = value.get("verb"), value.get("filter", []), value.get("limit"), value.get("by", "")
    if not isinstance(verb, str) or not isinstance(words, list) or not isinstance(by, str):
        raise WireError("a request has a verb and a list of filters")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise WireError("a limit is a number from 1")
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) != len(words):
        raise WireError("a filter is a text")
    order = value.get("order", {})
    if not isinstance(order, dict):
        raise WireError("an order is an object")
    return Request(verb, tuple(texts), limit, by, order)


def encode_end(gaps: Sequence[Gap], status: int) -> bytes:
    """Return the last line of an answer. With gaps it is an error with this exit code, for clients that do not know gaps."""
    if not gaps:
        return encode(END)
    fields = [(gap.what, gap.reason, gap.count, gap.path) for gap in gaps]
    return encode({"error": left_out(gaps), "status": status, "gaps": fields})


def decode_gaps(value: Mapping[str, object]) -> tuple[Gap, ...]:
    """Return the gaps of a last line. Raises `WireError`."""
    try:
        return tuple(_decode_gap(fields) for fields in list_of(value.get("gaps", [])))
    except ValueError:
        raise WireError("what can't be read is not said as it should be") from None


def _decode_gap(fields: object) -> Gap:
    what, reason, count, path = list_of(fields)
    if not isinstance(what, str) or not isinstance(reason, str) or not isinstance(path, str):
        raise ValueError("no text")
    return Gap(what, reason, whole_of(count), path)


def encode_message(message: Message, waiting: Mapping[QueueId, Waiting] = {}) -> bytes:
    """Return a message with its entries, as a line. `waiting`: entries of any messages, and why they wait."""
    noted = {
        str(entry.number): waiting[queue_id]
        for entry in (message.entries if waiting else ())
        if (queue_id := QueueId(message.spool_id, entry.number)) in waiting
    }
    words = {str(entry.number): encode_bytes(entry.words) for entry in message.entries if entry.words is not None}
    notes = {number: encode_bytes(one.sentence) for number, one in noted.items()}
    holds = {number: one.hold for number, one in noted.items() if one.hold}
    return encode(
        {
            **({"stuck": notes} if notes else {}),
            **({"holds": holds} if holds else {}),
            **({"words": words} if words else {}),
            "id": message.spool_id,
            "sender": encode_bytes(message.sender),
            "client": encode_bytes(message.client),
            "eightbit": message.eightbit,
            "received": message.received_at,
            "size": message.size_bytes,
            "dots": message.stuffed_dots,
            "count": message.recipient_count,
            "entries": [
                (
                    entry.number,
                    encode_bytes(entry.recipient),
                    entry.area.value,
                    entry.due_at,
                    entry.attempts,
                    None
                    if entry.reply is None
                    else (entry.reply.code, encode_bytes(entry.reply.enhanced), encode_bytes(entry.reply.text)),
                    encode_bytes(entry.host),
                )
                for entry in message.entries
            ],
        }
    )


def decode_message(value: Mapping[str, object]) -> Message:
    """The message that `encode_message` wrote. Raises `WireError`."""
    notes, holds, words = value.get("stuck", {}), value.get("holds", {}), value.get("words", {})
    if not isinstance(notes, dict) or not isinstance(holds, dict) or not isinstance(words, dict):
        raise WireError("a message is not as it should be")
    try:
        return Message(
            SpoolId(whole_of(value["id"])),
            bytes_of(value["sender"]),
            bytes_of(value["client"]),
            bool(value["eightbit"]),
            float(number_of(value["received"])),
            whole_of(value["size"]),
            whole_of(value["count"]),
            [_noted(_decode_entry(fields, words), notes, holds) for fields in list_of(value["entries"])],
            whole_of(value.get("dots", 0)),
        )
    except (KeyError, ValueError, TypeError):
        raise WireError("a message is not as it should be") from None


def _noted(entry: Entry, notes: Mapping[str, object], holds: Mapping[str, object]) -> Entry:
    note = notes.get(str(entry.number)) if notes else None
    if note is None:
        return entry
    return NotedEntry.of(entry, Waiting(str(holds.get(str(entry.number), "")), bytes_of(note)))


def encode_known(lines: Sequence[bytes]) -> bytes:
    """What is known of a domain, as a line."""
    return encode({"known": [encode_bytes(line) for line in lines]})


def decode_explained(value: Mapping[str, object]) -> Message | Known:
    """A line of an answer to `why`: a message with its entries, or what is known of a domain. Raises `WireError`."""
    if "known" not in value:
        return decode_message(value)
    try:
        return Known([bytes_of(line) for line in list_of(value["known"])])
    except ValueError:
        raise WireError("what is known of a domain is not as it should be") from None


def _decode_entry(value: object, words: Mapping[str, object]) -> Entry:
    number, recipient, area, due_at, attempts, reply, host = list_of(value)
    if reply is not None:
        code, enhanced, text = list_of(reply)
        reply = Reply(whole_of(code), bytes_of(enhanced), bytes_of(text))
    own = words.get(str(number)) if words else None
    said = None if own is None else bytes_of(own)
    return Entry(
        whole_of(number),
        bytes_of(recipient),
        Area(area),
        float(number_of(due_at)),
        whole_of(attempts),
        reply,
        bytes_of(host),
        said,
    )


def encode_summary(summary: Summary) -> bytes:
    """Counts, as a line."""
    areas = {area.value: (count.entries, count.messages, count.stored_bytes) for area, count in summary.areas.items()}
    value: dict[str, object] = {"areas": areas, "exact": summary.exact}
    return encode({**value, "refusing": summary.refusing} if summary.refusing else value)


def decode_summary(value: Mapping[str, object]) -> Summary:
    """The counts that `encode_summary` wrote. Raises `WireError`."""
    areas, refusing = value.get("areas"), value.get("refusing", "")
    if not isinstance(areas, dict) or not isinstance(refusing, str):
        raise WireError("counts are not as they should be")
    try:
        counts = {area: AreaCount(*map(whole_of, list_of(areas[area.value]))) for area in Area}
    except (KeyError, ValueError, TypeError):
        raise WireError("counts are not as they should be") from None
    return Summary(counts, bool(value.get("exact")), refusing=refusing)


def encode_row(name: bytes, counts: Sequence[int]) -> bytes:
    """One row of a shape, as a line."""
    return encode({"name": encode_bytes(name), "counts": tuple(counts)})


def decode_row(value: Mapping[str, object]) -> tuple[bytes, tuple[int, ...]]:
    """The name and counts that `encode_row` wrote. Raises `WireError`."""
    try:
        return bytes_of(value["name"]), tuple(map(whole_of, list_of(value["counts"])))
    except (KeyError, ValueError):
        raise WireError("a row is not as it should be") from None


def encode_plan(provider: str) -> bytes:
    """The first line of a plan: whose it is."""
    return encode({"plan": provider})


def decode_plan(value: Mapping[str, object]) -> str:
    """The provider that `encode_plan` wrote. Raises `WireError`."""
    provider = value.get("plan")
    if not isinstance(provider, str):
        raise WireError("a plan does not say whose it is")
    return provider


def encode_part(part: Mapping[str, object]) -> bytes:
    """A part of a plan, as a line."""
    return encode({"part": part})


def decode_part(value: Mapping[str, object]) -> Mapping[str, object]:
    """The part that `encode_part` wrote. Raises `WireError`."""
    part = value.get("part")
    if not isinstance(part, dict):
        raise WireError("a part of a plan is not as it should be")
    return part


def encode_piece(piece: bytes) -> bytes:
    """A piece of content, as a line."""
    return encode({"piece": binascii.b2a_base64(piece, newline=False).decode("ascii")})


def decode_piece(value: Mapping[str, object]) -> bytes:
    """The piece that `encode_piece` wrote. Raises `WireError`."""
    piece = value.get("piece")
    try:
        return binascii.a2b_base64(piece if isinstance(piece, str) else "-", strict_mode=True)
    except ValueError:
        raise WireError("a piece of content is not as it should be") from None


def encode_number(number: int) -> bytes:
    """How many entries something was done to, as a line."""
    return encode({"entries": number})


def decode_number(value: Mapping[str, object]) -> int:
    """The number that `encode_number` wrote. Raises `WireError`."""
    try:
        return whole_of(value.get("entries"))
    except ValueError:
        raise WireError("a number of entries is not as it should be") from None
