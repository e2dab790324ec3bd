"""The corpus: configuration files, good and broken, that table and schema must agree on.

A broken one has the line of its fault and words that the message must hold.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Broken:
    """A file with one fault. `is_seen_by_schema` False: only the table can tell."""

    name: str
    text: str
    line: int
    words: str
    is_seen_by_schema: bool = True


def in_queue(inner: str) -> str:
    return f"<mailserver>\n<mta>\n<queue>\n{inner}</queue></mta></mailserver>"


def in_chunk(inner: str) -> str:
    return in_queue(inner).replace("<queue>", '<queue provider="chunk">')


def in_deliver(inner: str) -> str:
    return f"<mailserver>\n<mta>\n<deliver>\n{inner}</deliver></mta></mailserver>"


def in_report(inner: str) -> str:
    return f"<mailserver>\n<mta>\n<report>\n{inner}</report></mta></mailserver>"


def in_listeners(inner: str) -> str:
    return f"<mailserver>\n<mta>\n<submit><listeners>\n{inner}</listeners></submit></mta></mailserver>"


def in_sendmail(inner: str) -> str:
    return f"<mailserver>\n<mta>\n<submit><sendmail>\n{inner}</sendmail></submit></mta></mailserver>"


def in_server(inner: str) -> str:
    return in_listeners(f"<listener><server>{inner}</server></listener>")


def in_store(inner: str) -> str:
    return f"<mailserver><message_store>\n{inner}</message_store></mailserver>"


def in_directory(inner: str) -> str:
    return f"<mailserver>\n<directory>\n{inner}</directory></mailserver>"


GOOD = {
    "reports": in_report(
        "<queuecache>5</queuecache><interval_low>100ms</interval_low><delay_start>1m</delay_start>"
        "<generate_ndr>no</generate_ndr><ndr_from>Mail.Desk@example.net</ndr_from>"
        "<ndr_subject>Nicht zugestellt: \u00fc</ndr_subject><attachmsg>0</attachmsg>"
    ),
    "empty": "<mailserver/>",
    "empty blocks": "<mailserver><mta><submit><listeners/></submit><queue/></mta><application/><admin/></mailserver>",
    "any order": in_queue("<spool><bufsize>8K</bufsize></spool><minfree>0</minfree><journal/><rootpath>q</rootpath>"),
    "times": in_queue("<retry_maxtime>1h30m</retry_maxtime><retry_delays>100ms|15m | \n2h</retry_delays>"),
    "bare number": in_deliver("<interval_low>100</interval_low><delay_start>0</delay_start>"),
    "sizes": in_queue("<maxclustersize> 256Ki </maxclustersize><journal><maxsize>1G</maxsize><maxage>0</maxage></journal>"),
    "metrics": "<mailserver><admin><metrics/></admin></mailserver>",
    "metrics elsewhere": '<mailserver><admin><metrics interface="::1" port="0"/></admin></mailserver>',
    "web": "<mailserver><admin><web/></admin></mailserver>",
    "web elsewhere": '<mailserver><admin><web interface="::1" port="0"><names>a.example|B.example</names></web></admin>'
    "</mailserver>",
    "audit": in_deliver('<audit format="json">%DIRLOG%/Y%Y%/M%M%-%D%-%h%-%DT%.log</audit>'),
    "no audit": in_deliver("<audit/>"),
    "parts": in_chunk("<conf_split>1</conf_split><minfree>1%</minfree>"),
    "shares": in_queue("<minfree>2.5%</minfree>"),
    "free bytes": in_queue("<minfree>500M</minfree>"),
    "boolean in words": in_queue("<spool><hardlinks>False</hardlinks></spool>"),
    "networks": in_server("<relay_clients>127.0.0.1 | ::1 | 192.168/16 | 2001:db8::/32 | 10/8</relay_clients>"),
    "no networks": in_server("<relay_clients/>"),
    "sendmail": in_sendmail(""),
    "sendmail for some": in_sendmail("<allow>www-data | 1000</allow><deny>_x.y$</deny><origin>Our.example</origin>"),
    "sendmail for none": in_sendmail("<rootpath>/x</rootpath><allow/><deny>*</deny><origin/>"),
    "two listeners": in_listeners(
        '<listener interface="::1" port="2525"/><listener name="x" interface="127.0.0.1" port="2525"/>'
    ),
    "free ports": in_listeners('<listener port="0"/><listener port="0"/>'),
    "relays": in_deliver(
        '<relays><relay address="a.example"/><relay address="127.0.0.1:8025" destdomains="a.example, b.example"/>'
        '<relay address="[::1]:587" destdomains="c.example"/></relays>'
    ),
    "senders": in_deliver(
        '<relays><relay address="a" senders="c.example, Joe@D.example" sendernets="10.0.0.0/8,::1"/>'
        '<relay address="b" senders="d.example" destdomains="c.example"/><relay address="c"/></relays>'
    ),
    "client": in_deliver(
        "<client><mxport>2525</mxport><loopback>yes</loopback><fallbackMX_A>N</fallbackMX_A><eightbit>bounce</eightbit>"
        "</client>"
    ),
    "name servers": in_deliver('<dns servers="127.0.0.1:5353 | [::1]:53 | 192.0.2.1" timeout="200ms" trustad="Y"/>'),
    "rates": in_deliver("<messages_per_minute>600</messages_per_minute><recipients_per_minute>0</recipients_per_minute>"),
    "destinations": in_deliver(
        '<destinations><destination domains="Mail.example, *.mail.example" maxserverconnections="5" '
        'messages_per_minute="600"/><destination domains="*.example" recipients_per_minute="0"/>'
        '<destination domains="a" maxserverconnections=""/></destinations>'
    ),
    "no destinations": in_deliver("<destinations/>"),
    "schedule": in_deliver(
        "<schedule><forget_host>1s</forget_host><retry_host>100ms</retry_host><backlog>1</backlog><maxage_idle>0</maxage_idle>"
        "<maxage_active>1h</maxage_active><max_message_concurrency>0</max_message_concurrency>"
        "<scale_max_concurrency>1</scale_max_concurrency></schedule>"
    ),
    "no schedule": in_deliver("<schedule/>"),
    "directory": in_directory(
        "<domains>example.net | b.example</domains><users>alice|bob</users><postmaster>Alice</postmaster>"
    ),
    "tokens": "<mailserver><message_store><userpath>%DIRVAR%/%SYSNAME%/ms</userpath></message_store></mailserver>",
    "lmtp by a socket": in_store('<lmtp address="unix:/run/dovecot/lmtp"/>'),
    "lmtp by a relative socket": in_store('<lmtp address="unix:%DIRVAR%/lmtp"/>'),
    "lmtp by an address": in_store('<lmtp address="127.0.0.1:24"/>'),
    "lmtp by a name": in_store('<lmtp address="Store.example:2424"/>'),
    "lmtp by IPv6": in_store('<lmtp address="[::1]:24"/>'),
    "own name": "<mailserver><application><announcehost>%SYSNAME%</announcehost></application></mailserver>",
    "directories": "<mailserver><application><dirpaths><root>/s</root><var>v</var></dirpaths></application></mailserver>",
}

BROKEN = [
    Broken("other root", "<server/>", 1, "write <mailserver>"),
    Broken("unknown element", "<mailserver>\n\n<nonsense/></mailserver>", 3, "<nonsense> is not known in <mailserver>"),
    Broken("misspelt element", in_queue("<retry_maxtme\n>1h</retry_maxtme>"), 4, "did you mean <retry_maxtime>?"),
    Broken("element elsewhere", "<mailserver>\n<minfree>0</minfree></mailserver>", 2, "it belongs into <queue>"),
    Broken("unknown attribute", in_listeners('<listener\n\nporrt="25"/>'), 4, "did you mean attribute port?"),
    Broken("attribute as element", in_listeners("<listener>\n<port>25</port></listener>"), 5, "write it as an attribute"),
    Broken("attribute of a value", in_queue('<minfree unit="x">0</minfree>'), 4, "<minfree> has no attribute unit"),
    Broken("attribute of a block", '<mailserver\nxmlns:x="y"/>', 1, "attribute xmlns:x", False),
    Broken("element in a value", in_queue("<minfree>\n<x/></minfree>"), 5, "takes a value, no element"),
    Broken(
        "doubled value",
        in_queue("<minfree>0</minfree>\n<minfree>0</minfree>"),
        5,
        "stands twice in <queue>: it is in line 4 too",
    ),
    Broken("doubled block", "<mailserver>\n<admin/>\n<admin/></mailserver>", 3, "stands twice"),
    Broken("stray text", in_queue("oops <minfree>0</minfree>"), 3, '"oops" is text'),
    Broken("stray CDATA", "<mailserver>\n<mta><![CDATA[x]]></mta></mailserver>", 2, '"x" is text'),
    Broken(
        "an inclusion",
        '<mailserver>\n<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/></mailserver>',
        2,
        "<xi:include>",
    ),
    Broken("time", in_deliver("<interval_low>5x</interval_low>"), 4, '<interval_low> is "5x": write a time such as'),
    Broken("time order", in_queue("<retry_maxtime>30m1h</retry_maxtime>"), 4, "the larger first"),
    Broken("time empty", in_queue("<retry_maxtime/>"), 4, "<retry_maxtime> is empty"),
    Broken("time too short", in_deliver("<interval_low>99ms</interval_low>"), 4, "write at least 100ms", False),
    Broken("time of the world", in_deliver("<interval_low>1000d</interval_low>"), 4, "write at most 365d", False),
    Broken("delays", in_queue("<retry_delays>15m | x</retry_delays>"), 4, "write a time"),
    Broken("no delays", in_queue("<retry_delays></retry_delays>"), 4, "<retry_delays> is empty"),
    Broken("empty delay", in_queue("<retry_delays>15m || 2h</retry_delays>"), 4, "item 2 of the list is empty"),
    Broken("no segments", in_queue("<journal>\n<segmentsize>0</segmentsize></journal>"), 5, "write at least 1Mi", False),
    Broken("no journal", in_queue("<journal>\n<maxsize>0</maxsize></journal>"), 5, "write at least 1Mi", False),
    Broken("size", in_queue("<maxclustersize>256k</maxclustersize>"), 4, "there is no unit k"),
    Broken("count", in_queue("<maxmemoryqueue>10K</maxmemoryqueue>"), 4, "write a whole number"),
    Broken("negative", in_server("<maxrecips>-1</maxrecips>"), 4, "write a whole number"),
    Broken("share", in_queue("<minfree>100%</minfree>"), 4, "less than 100%"),
    Broken("boolean", in_queue("<spool><hardlinks>1</hardlinks></spool>"), 4, "write Y or N"),
    Broken("provider", in_queue("").replace("<queue>", '<queue provider="memory">'), 3, "not available in this version"),
    Broken("no parts", in_chunk("<conf_split>0</conf_split>"), 4, "write at least 1", False),
    Broken("many parts", in_chunk("<conf_split>1001</conf_split>"), 4, "write at most 1000", False),
    Broken("parts of another", in_queue("<conf_split>23</conf_split>"), 4, "<conf_split> belongs to provider chunk", False),
    Broken("journal of another", in_chunk("<journal/>"), 4, "<journal> belongs to provider clustered and log", False),
    Broken("spool of another", in_chunk("<spool/>"), 4, "<spool> belongs to provider clustered and log", False),
    Broken("other provider", in_queue("").replace("<queue>", '<queue provider="x">'), 3, "write clustered"),
    Broken("network", in_server("<relay_clients>127.0.0.1 | nets</relay_clients>"), 4, '"nets" is not a network'),
    Broken(
        "network bits", in_server("<relay_clients>10.0.0.1/8</relay_clients>"), 4, "write 10.0.0.0/8 for the network", False
    ),
    Broken("network width", in_server("<relay_clients>10.0.0.0/33</relay_clients>"), 4, "at most 32", False),
    Broken(
        "token", "<mailserver><admin>\n<socket>%DIRTMP%/s</socket></admin></mailserver>", 2, "there is no token %DIRTMP%"
    ),
    Broken(
        "socket's name",
        f"<mailserver><admin>\n<socket>%DIRVAR%/{'s' * 81}</socket></admin></mailserver>",
        2,
        "<socket> is too long: the socket's own name has 81 bytes: write one of at most 80",
        False,
    ),
    Broken(
        "socket's path",
        f"<mailserver><admin>\n<socket>{'/srv' * 1024}/s</socket></admin></mailserver>",
        2,
        "<socket> is too long: the path has 4098 bytes: write one of at most 4095",
        False,
    ),
    Broken(
        "socket's directory",
        f"<mailserver><admin>\n<socket>/{'d' * 256}/s</socket></admin></mailserver>",
        2,
        "<socket> is too long: a directory's name has 256 bytes: write one of at most 255",
        False,
    ),
    Broken(
        "socket's path by default",
        f"<mailserver><application><dirpaths><var>{'/srv' * 1024}</var></dirpaths></application></mailserver>",
        1,
        "<socket> is too long: the path has",
        False,
    ),
    Broken(
        "token too early",
        "<mailserver><application><dirpaths>\n<config>%DIRVAR%</config></dirpaths></application></mailserver>",
        2,
        "not known yet",
        False,
    ),
    Broken("port", in_listeners('<listener port="65536"/>'), 4, "at most 65535"),
    Broken("port name", in_listeners('<listener port="smtp"/>'), 4, "attribute port of <listener>"),
    Broken("interface", in_listeners('<listener interface="eth0"/>'), 4, "write an IP address"),
    Broken("listener name", in_listeners('<listener name="a b"/>'), 4, "write letters"),
    Broken(
        "same names",
        in_listeners('<listener name="a" port="1"/>\n<listener name="a" port="2"/>'),
        5,
        'called "a", the other in line 4',
        False,
    ),
    Broken(
        "same ports", in_listeners('<listener port="26"/>\n<listener interface="::1" port="26"/>'), 5, "share port 26", False
    ),
    Broken("relay nowhere", in_deliver("<relays>\n<relay/></relays>"), 5, "<relay> has no attribute address"),
    Broken("relay address", in_deliver('<relays>\n<relay address="a:b:c"/></relays>'), 5, "write HOST:PORT", False),
    Broken("relay domains", in_deliver('<relays>\n<relay address="a" destdomains="*.a"/></relays>'), 5, "not a domain name"),
    Broken(
        "two defaults",
        in_deliver('<relays>\n<relay address="a"/>\n<relay address="b"/></relays>'),
        6,
        "second default relay, the first is in line 5",
        False,
    ),
    Broken(
        "domain in two relays",
        in_deliver(
            '<relays>\n<relay address="a" destdomains="x.example"/>\n<relay address="b" destdomains="X.example"/></relays>'
        ),
        6,
        "twice, in line 5 too",
        False,
    ),
    Broken(
        "sender in two relays",
        in_deliver(
            '<relays>\n<relay address="a" senders="j@x.example"/>\n<relay address="b" senders="J@X.example"/></relays>'
        ),
        6,
        '"j@x.example" stands in senders twice, in line 5 too',
        False,
    ),
    Broken(
        "no sender",
        in_deliver('<relays>\n<relay address="a" senders="a@b@c"/></relays>'),
        5,
        '"a@b@c" is not an address',
        False,
    ),
    Broken(
        "networks of no senders",
        in_deliver('<relays>\n<relay address="a" sendernets="::1"/></relays>'),
        5,
        "sendernets but no senders",
        False,
    ),
    Broken(
        "networks in a list of attributes",
        in_deliver('<relays>\n<relay address="a" senders="a" sendernets="::1|::2"/></relays>'),
        5,
        "is not a network",
    ),
    Broken("name server", in_deliver('<dns servers="ns.example"/>'), 4, '"ns.example" is not the address of a name server'),
    Broken("MX port", in_deliver("<client>\n<mxport>0</mxport></client>"), 5, "write at least 1"),
    Broken("eight bits", in_deliver("<client>\n<eightbit>Y</eightbit></client>"), 5, "write send or bounce or convert"),
    Broken(
        "relay TLS",
        in_deliver('<relays>\n<relay address="a">\n<tls level="maybe"/></relay></relays>'),
        6,
        'attribute level of <tls> is "maybe": write none or opportunistic or encrypt or verify',
    ),
    Broken(
        "TLS from the start without TLS",
        in_deliver('<relays>\n<relay address="a">\n<tls latent="N" level="opportunistic"/></relay></relays>'),
        6,
        '<tls>: level is "opportunistic", and latent "N", TLS from the start: write encrypt or verify',
        False,
    ),
    Broken(
        "a name that nobody checks",
        in_deliver('<relays>\n<relay address="a">\n<tls level="encrypt" name="b.example"/></relay></relays>'),
        6,
        '<tls>: name has no effect at level "encrypt": remove it, or write level="verify"',
        False,
    ),
    Broken(
        "issuers without a check",
        in_deliver('<destinations>\n<destination domains="a"><tls cafile="a.pem"/></destination></destinations>'),
        5,
        '<tls>: cafile has no effect at level "opportunistic": remove it, or write level="verify"',
        False,
    ),
    Broken(
        "a key without a certificate",
        in_deliver('<client>\n<tls privatekey="key.pem"/></client>'),
        5,
        "<tls>: there is a privatekey, but no certificate: write both, or neither",
        False,
    ),
    Broken(
        "issuers that are not there",
        in_deliver('<client>\n<tls level="verify" cafile="/nonexistent/a.pem"/></client>'),
        5,
        "<tls>: cafile: /nonexistent/a.pem can't be read: No such file or directory",
        False,
    ),
    Broken(
        "a client's certificate that is not there",
        in_deliver('<client>\n<tls certificate="/nonexistent/a.pem"/></client>'),
        5,
        "<tls>: certificate: /nonexistent/a.pem can't be read: No such file or directory",
        False,
    ),
    Broken(
        "TLS of MX hosts from the start",
        in_deliver('<client>\n<tls latent="N"/></client>'),
        5,
        "attribute latent is not known",
    ),
    Broken("an old TLS", in_deliver('<client>\n<tls minversion="1.1"/></client>'), 5, "write 1.2 or 1.3"),
    Broken("TLS of nobody", in_listeners('<listener>\n<ssl latent="Y"/></listener>'), 5, "<ssl> has no <certificate>"),
    Broken("TLS twice", in_listeners("<listener><ssl/>\n<ssl/></listener>"), 5, "<ssl> stands twice in <listener>"),
    Broken(
        "TLS of the original",
        in_listeners('<listener>\n<ssl kspath="x"/></listener>'),
        5,
        "kspath in <ssl> is of the original",
    ),
    Broken(
        "TLS from nowhere",
        in_listeners(
            "<listener><ssl>\n<certificate>/nowhere</certificate><privatekey>/nowhere</privatekey></ssl></listener>"
        ),
        5,
        "<certificate>: /nowhere can't be read: No such file",
        False,
    ),
    Broken("aliases", in_directory("<aliases>x</aliases>"), 3, "<aliases> in <directory> is not available"),
    *(
        Broken(f"report's {name}", in_report(f"<{name}/>"), 4, f"<{name}> in <report> is not available in this version")
        for name in ("ndr_recip_redirect", "ndr_recips_additional", "ndr_copies_folder", "ndr_textpart")
    ),
    Broken("report's original", in_report("<announcemta/>"), 4, "<announcemta> in <report> is of the original, not here"),
    Broken("sender of reports", in_report("<ndr_from>postmaster</ndr_from>"), 4, "is not an address: write an address such"),
    Broken(
        "sender of reports with a name",
        in_report("<ndr_from>P &lt;p@a.example&gt;</ndr_from>"),
        4,
        "is not an address: write an address such as postmaster@example.net",
    ),
    Broken("subject of reports", in_report("<ndr_subject/>"), 4, "is empty: write a line of text, at most 200 characters"),
    Broken("too much returned", in_report("<attachmsg>11M</attachmsg>"), 4, "write at most 10M", is_seen_by_schema=False),
    Broken(
        "metrics's path",
        '<mailserver><admin>\n<metrics path="/m"/></admin></mailserver>',
        2,
        "attribute path is not known in <metrics>",
    ),
    Broken("sendmail for a name", in_sendmail("<allow>joe doe</allow>"), 4, "can't be a user of the system"),
    Broken("sendmail at no domain", in_sendmail("<origin>a b</origin>"), 4, "is not a domain name"),
    Broken(
        "web for everybody",
        '<mailserver><admin>\n<web interface="192.0.2.1"/></admin></mailserver>',
        2,
        "<web> at interface 192.0.2.1 would show the queue to every host that can connect: write <passwordfile>",
        is_seen_by_schema=False,
    ),
    Broken(
        "web at all interfaces",
        '<mailserver><admin>\n<web interface=""/></admin></mailserver>',
        2,
        "<web> at all interfaces would show",
        is_seen_by_schema=False,
    ),
    Broken(
        "web's name with a colon",
        "<mailserver><admin><web>\n<username>a:b</username></web></admin></mailserver>",
        2,
        "a browser can send no name with a colon",
        is_seen_by_schema=False,
    ),
    Broken(
        "web's password that is not there",
        "<mailserver><admin><web>\n<passwordfile>none</passwordfile></web></admin></mailserver>",
        2,
        "<passwordfile>: there is no such file",
        is_seen_by_schema=False,
    ),
    Broken("two metrics", "<mailserver><admin><metrics/>\n<metrics/></admin></mailserver>", 2, "stands twice"),
    Broken(
        "no format",
        in_deliver('<audit format="xml">x</audit>'),
        4,
        'attribute format of <audit> is "xml": write text or json',
    ),
    Broken("audit's attribute", in_deliver('<audit rot="daily">x</audit>'), 4, "<audit> has no attribute rot: remove it"),
    Broken("no such date", in_deliver("<audit>x-%s%.log</audit>"), 4, "there is no token %s%"),
    Broken("a date elsewhere", in_queue("<rootpath>%DT%</rootpath>"), 4, "there is no token %DT%"),
    Broken("rate", in_deliver("<messages_per_minute>6/s</messages_per_minute>"), 4, "write a whole number"),
    Broken(
        "destination of nobody", in_deliver("<destinations>\n<destination/></destinations>"), 5, "has no attribute domains"
    ),
    *(
        Broken(name, in_deliver(f'<destinations>\n<destination domains="{domains}"/></destinations>'), 5, words)
        for name, domains, words in (
            ("destination without a domain", "", "attribute domains of <destination> is empty: write domains separated by"),
            ("destination's domain", "a..example", '"a..example" is not a domain name'),
            ("destination's list", "a.example|b.example", '"a.example|b.example" is not a domain name'),
            (
                "destination of all",
                "*",
                '"*" has a "*" that is not its first label: write mail.example for that domain alone',
            ),
            ("wildcard inside", "a.*.example", "that is not its first label: write mail.example for that domain alone, or"),
            ("wildcard of a part", "*mail.example", "that is not its first label"),
            ("two wildcards", "*.*.example", "that is not its first label"),
            ("wildcard of nothing", "*.", '"" is not a domain name'),
        )
    ),
    Broken(
        "destination's rate",
        in_deliver('<destinations>\n<destination domains="a" messages_per_minute="-1"/></destinations>'),
        5,
        'attribute messages_per_minute of <destination> is "-1": write a whole number',
    ),
    Broken(
        "domain in two destinations",
        in_deliver('<destinations>\n<destination domains="a.b"/>\n<destination domains="c,A.b"/></destinations>'),
        6,
        '"a.b" stands in domains twice, in line 5 too, and the first one counts',
        False,
    ),
    Broken(
        "wildcard twice in one destination",
        in_deliver('<destinations>\n<destination domains="*.a.b,*.A.b"/></destinations>'),
        5,
        '"*.a.b" stands in domains twice, in line 5 too',
        False,
    ),
    Broken(
        "destination's TLS",
        in_deliver('<destinations><destination domains="a">\n<tls level="full"/></destination></destinations>'),
        5,
        'attribute level of <tls> is "full": write none or opportunistic or encrypt or verify',
    ),
    *(
        Broken(name, in_deliver(f"<schedule>\n<{name}>5</{name}></schedule>"), 5, f"<{name}> in <schedule> is not available")
        for name in ("max_verify_concurrency", "scale_verify_concurrency")
    ),
    Broken("no backlog", in_deliver("<schedule>\n<backlog>0</backlog></schedule>"), 5, "write at least 1"),
    Broken(
        "no scale", in_deliver("<schedule>\n<scale_max_concurrency>0</scale_max_concurrency></schedule>"), 5, "at least 1"
    ),
    Broken("retries at once", in_deliver("<schedule>\n<retry_host>0</retry_host></schedule>"), 5, "at least 100ms", False),
    Broken(
        "client TLS", in_deliver('<client>\n<tls level=""/></client>'), 5, "attribute level of <tls> is empty: write none"
    ),
    *(
        Broken(name, in_server(f"<{name}/>"), 4, f"<{name}> in <server> is of the original, not here")
        for name in (
            "transcript",
            "validate_helo",
            "blacklist",
            "greylist",
            "filter",
            "remotenets",
            "delay_greet",
            "authtypes",
        )
    ),
    Broken(
        "class",
        in_queue("").replace("<queue>", '<queue class="x">'),
        3,
        "attribute class in <queue> is of the original, not here",
    ),
    Broken("pop3", "<mailserver>\n<pop3server/></mailserver>", 2, "is of the original, not here"),
    Broken("domain", in_directory("<domains>a..b</domains>"), 3, '"a..b" is not a domain name', False),
    Broken("no postmaster", in_directory("<domains>a.example</domains><users>a</users>"), 3, "no <postmaster>", False),
    Broken(
        "no such postmaster", in_directory("<users>a</users>\n<postmaster>b</postmaster>"), 4, "not one of <users>", False
    ),
    Broken("user as path", in_directory("<users>..</users>"), 3, '".." can\'t be a user', False),
    Broken(
        "no such file",
        in_directory("<users>./missing</users>"),
        3,
        "a regular file that is there; a relative path begins at <root>, and a relative <root> at the folder of the",
        False,
    ),
    Broken(
        "lmtp beside userpath",
        in_store('<lmtp address="127.0.0.1:24"/>\n<userpath>/s/ms</userpath>'),
        3,
        "<userpath> and <lmtp> (line 2) stand in one <message_store>, but local mail goes either into maildirs or to an",
        False,
    ),
    Broken(
        "lmtp beside mailpath",
        in_store('<mailpath>Mail</mailpath>\n<lmtp address="127.0.0.1:24"/>'),
        2,
        "remove <mailpath>, or <lmtp>",
        False,
    ),
    Broken("two lmtp", in_store('<lmtp address="a:24"/>\n<lmtp address="b:24"/>'), 3, "remove one"),
    Broken("lmtp nowhere", in_store("<lmtp/>"), 2, "<lmtp> has no attribute address: write unix:PATH, such as"),
    Broken("lmtp without a port", in_store('<lmtp address="127.0.0.1"/>'), 2, "it has no port, and LMTP has no port of its"),
    Broken("lmtp as a path", in_store('<lmtp address="/run/lmtp"/>'), 2, "write unix:/run/lmtp"),
    Broken(
        "lmtp as nonsense", in_store('<lmtp address="a b:24"/>'), 2, "write unix:PATH, such as unix:/run/dovecot/lmtp, or"
    ),
    Broken("lmtp without a path", in_store('<lmtp address="unix:"/>'), 2, "write a path"),
    Broken(
        "lmtp by a strange path",
        in_store('<lmtp address="unix:/run/a b"/>'),
        2,
        "write a path of ASCII without blanks",
        False,
    ),
    Broken("lmtp by a long path", in_store(f'<lmtp address="unix:/{"x" * 107}"/>'), 2, "at most 107 bytes", False),
    Broken(
        "mailpath out",
        "<mailserver><message_store>\n<mailpath>../x</mailpath></message_store></mailserver>",
        2,
        "write a relative path",
        False,
    ),
    Broken(
        "one place for two",
        in_queue("<rootpath>q</rootpath>\n<spool><rootpath>q</rootpath></spool>"),
        5,
        "write two paths",
        False,
    ),
    Broken(
        "announced IP",
        "<mailserver><application>\n<announcehost>1.2.3.4</announcehost></application></mailserver>",
        2,
        "not a domain name",
        False,
    ),
]
