"""The state machine of an LMTP session (RFC 2033 4.1): the table of its transitions.

    event      from           to
    LHLO_SENT  GREETING       LHLO
    OPENED     LHLO           OPEN
    STOP       OPEN STOPPING  STOPPING
    END        GREETING LHLO  UNUSABLE
    END        OPEN STOPPING  ENDED

LMTP has neither EHLO nor HELO. TLS and authentication are not used over it: the server is on this host or in a network of
its own (RFC 2033 5).

*Rules*: as in `smtp.client.state`, whose states and events these are. 421 for one recipient, while replies for others are
awaited, leads to STOPPING: those count, and nothing begins any more.
"""

from __future__ import annotations

from mailismus.smtp.client.state import ClientEvent, ClientState

TRANSITIONS = {
    ClientState.GREETING: {ClientEvent.LHLO_SENT: ClientState.LHLO, ClientEvent.END: ClientState.UNUSABLE},
    ClientState.LHLO: {ClientEvent.OPENED: ClientState.OPEN, ClientEvent.END: ClientState.UNUSABLE},
    ClientState.OPEN: {ClientEvent.STOP: ClientState.STOPPING, ClientEvent.END: ClientState.ENDED},
    ClientState.STOPPING: {ClientEvent.STOP: ClientState.STOPPING, ClientEvent.END: ClientState.ENDED},
    ClientState.UNUSABLE: {},
    ClientState.ENDED: {},
}
"""State -> event -> next state. An event that a state does not have is a defect of this program (`IllegalTransition`)."""
