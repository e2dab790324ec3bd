"""Pages of keys, as S3 (XML) and Swift (JSON) write them. Pure. They come from the network: what is malformed raises
`ValueError`."""

from __future__ import annotations

import json

from lxml import etree


def keys_of_s3(page: bytes) -> list[str]:
    """The keys of a ListObjectsV2 answer."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        top = etree.fromstring(page, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"no list of keys: {error}") from error
    return [element.text or "" for element in top.iterfind("{*}Contents/{*}Key")]


def keys_of_swift(page: bytes) -> list[str]:
    """The names of a container's listing. An empty one may have no body."""
    if not page:
        return []
    try:
        found = json.loads(page)
    except RecursionError:
        raise ValueError("no list of objects") from None
    if not isinstance(found, list):
        raise ValueError("no list of objects")
    return [_name(item) for item in found]


def _name(item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str):
        raise ValueError("no list of objects")
    return name
