"""What objects refer to, for an engine that must know it and knows no structure itself.

An object's type comes from the link that names it. Where objects come in together, most of these
links are among them; the rest is told from the kind that an object was committed with and from the
form of its array. Too much is found rather than too little: an id that is none costs a search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgpack

from snapstore.chunks import pieces_of
from snapstore.engine import Kind, Obj
from snapstore.errors import Corrupt
from snapstore.ids import SIZE
from snapstore.model import extents, maps
from snapstore.model.layout import Layout
from snapstore.model.pages import decode_page, parts_of
from snapstore.model.snapshot import Record


def links(objects: Sequence[Obj], named: Collection[bytes] = ()) -> set[bytes]:
    """The ids that these objects refer to; among them those in contents of which it is known what
    they are: pages that a snapshot names, and layouts, if the info of a move names them.

    Nothing is found in what does not decode: whether it is sound is judged by who follows a link.
    """
    by_id = {o.id: o for o in objects}
    found, pages = links_and_pages(objects, named)
    for page in pages:
        if page in by_id:
            found.update(_parts(by_id[page]))
    return found


def links_and_pages(
    objects: Sequence[Obj], named: Collection[bytes] = ()
) -> tuple[set[bytes], list[bytes]]:
    """As links, without what pages refer to; and which of these ids are pages."""
    found: set[bytes] = set()
    pages: list[bytes | None] = []
    for o in objects:
        try:
            found.update(_linked(o, named, pages))
        except Corrupt:
            continue
    return found, [page for page in pages if page is not None]


def _linked(o: Obj, named: Collection[bytes], pages: list[bytes | None]) -> Iterator[bytes]:
    if o.kind == Kind.CHUNKED:
        yield from pieces_of(o.payload, o.id)
    elif o.kind == Kind.NODE:
        yield from _node(o)
    elif o.kind == Kind.SNAPSHOT:
        record = Record.decode(o.payload, o.id)
        pages.append(record.rows)
        yield from _there(record.parent, record.jump, record.history, record.scratchpad)
        yield from _there(record.files, record.rows, record.state)
    elif o.id in named:
        layout = Layout.decode(o.payload, o.id)
        pages.append(layout.rest)
        yield from (*layout.heads, *_there(layout.rest, layout.end))


def _there(*linked: bytes | None) -> Iterator[bytes]:
    return (link for link in linked if link is not None)


def _node(o: Obj) -> Iterator[bytes]:
    """A node of a list begins with a link or nil, one of a map with a number, and so does the root
    of a file tree, which has two fields."""
    try:
        fields = msgpack.unpackb(o.payload, use_list=False, unicode_errors="surrogatepass")
    except (ValueError, TypeError) as error:
        raise Corrupt(f"object {o.id.hex()} is no node") from error
    if not isinstance(fields, tuple) or len(fields) < 2:
        return
    if not isinstance(fields[0], int):
        node = extents.Node.decode(o.payload, o.id)
        yield from _there(node.prev, node.jump)
        yield from (node.ids[at : at + SIZE] for at in range(0, len(node.ids), SIZE))
    elif len(fields) == 2:
        yield from (fields[1:] if isinstance(fields[1], bytes) else ())
    else:
        yield from _of_map(maps.decode(o.payload, o.id))


def _of_map(node: maps.Node) -> Iterator[bytes]:
    if isinstance(node, maps.Branch):
        yield from _there(*node.children)
        return
    for value in node.entries.values():
        if isinstance(value, maps.Link):
            yield value.id
        else:
            yield from _of_entry(value.content)


def _of_entry(inline: bytes) -> Iterator[bytes]:
    """What an entry of a directory refers to; a value of a scratchpad has no such form."""
    try:
        fields = msgpack.unpackb(inline, use_list=False, strict_map_key=False)
    except (ValueError, TypeError):
        return
    if isinstance(fields, tuple) and len(fields) >= 5:
        target = fields[4]
        if isinstance(target, bytes) and len(target) == SIZE:
            yield target


def _parts(page: Obj) -> Iterator[bytes]:
    try:
        yield from parts_of(decode_page(page.payload, page.id))
    except Corrupt:
        return
