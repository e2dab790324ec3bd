"""The playground: addresses of its hosts, its name table, and the configuration of its server (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from mailismus.demo.manners import Manner, domain_of_manner

ADDRESSES: Mapping[Manner, str] = {manner: f"127.77.0.{number}" for number, manner in enumerate(Manner, 1)}
"""Of mail hosts: all on loopback, one each, so that they can have one port."""
LOOPBACK = "127.0.0.1"
CONFIG_FILE = "mailismus.xml"
SOCKET_FILE = "admin.sock"
LOG_FILE = "server.log"
MAXTIME = "30m"

_CONFIG = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- The server of `mailismus demo`: it listens on loopback, and delivers to the mail hosts of the playground alone.
     Retries are much faster than in life. -->
<mailserver>
  <application>
    <announcehost>demo.test</announcehost>
    <dirpaths><root>{root}</root></dirpaths>
    <stop_timeout>2s</stop_timeout>
  </application>
  <mta>
    <queue provider="clustered">
      <retry_maxtime>{maxtime}</retry_maxtime>
      <retry_delays>10s | 20s | 40s | 60s</retry_delays>
      <minfree>1K</minfree>
      <journal><segmentsize>1Mi</segmentsize></journal>
    </queue>
    <submit>
      <listeners>
        <listener name="smtp" interface="{loopback}" port="{smtp_port}">
          <server><relay_clients>{loopback}</relay_clients></server>
        </listener>
      </listeners>
    </submit>
    <deliver>
      <maxserverconnections>5</maxserverconnections>
      <schedule><retry_host>20s</retry_host></schedule>
      <client>
        <timeout>30s</timeout>
        <mxport>{mail_port}</mxport>
        <loopback>Y</loopback>
      </client>
      <dns servers="{loopback}:{name_port}" timeout="2s"/>
    </deliver>
  </mta>
  <admin><socket>{root}/{socket}</socket><web interface="{loopback}" port="0"/></admin>
</mailserver>
"""


def configuration(root: str, smtp_port: int, mail_port: int, name_port: int, maxtime: str = MAXTIME) -> str:
    """The configuration of the server. `root`: the directory of the playground; `maxtime`: its `<retry_maxtime>`."""
    values = {"smtp_port": smtp_port, "mail_port": mail_port, "name_port": name_port, "maxtime": maxtime}
    return _CONFIG.format(root=escape(root), loopback=LOOPBACK, socket=SOCKET_FILE, **values)


def mail_hosts() -> Mapping[str, tuple[str, str]]:
    """The mail host of each domain, and its address."""
    domains = {manner: domain_of_manner(manner) for manner in Manner}
    return {domain: (f"mx.{domain}", ADDRESSES[manner]) for manner, domain in domains.items()}
