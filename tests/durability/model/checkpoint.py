"""Acts of a checkpoint. In step with `checkpoint.files`, `checkpoint.write` and `ledger.move_entries` of the provider.

begins: horizon, entries, marks --writes: 2 contents, 3 lines, 4 marks, unlinks-- syncs: 5, then says its record
--the record is told--> committed        \\--its sync, or a batch, fails--> abandoned
"""

from __future__ import annotations

from tests.durability.model.records import Cluster, Commit, Line, Place, Places
from tests.durability.model.replay import counting_clusters
from tests.durability.model.state import Moving
from tests.durability.model.world import World


def begin(world: World) -> None:
    """1: the horizon is the last batch that is durable and in the indexes. What is young then is to move."""
    memory = world.memory
    horizon = memory.sequence - 1
    if memory.untold is not None and world.keeps("the horizon is applied"):
        horizon -= 1
    horizon -= not world.keeps("the horizon is exact")
    late = frozenset(world.asked() & memory.young) if world.keeps("what is asked already is late") else frozenset[Line]()
    owed = memory.owed
    if not world.keeps("marks after durable"):
        lines = world.lines()
        owed |= {place for line in world.asked() if (place := lines.get(line)) is not None}
    number = memory.next_checkpoint
    world.know(next_checkpoint=number + 1, moving=Moving(number, horizon, memory.young, owed, late))
    if not world.scenario.slow:
        write(world)


def write(world: World) -> None:
    """2, 3, 4: nothing is synced, nothing counts."""
    _cut(world)
    _write_contents(world)
    _write_lines(world)
    _mark(world)


def _cut(world: World) -> None:
    moving = world.memory.moving
    assert moving is not None
    cut = {cluster: length for cluster, length in world.memory.cut if world.disk.now("C", cluster)}
    cut_off(world, cut)
    world.know(moving=moving._replace(written=moving.written | set(cut)))


def cut_off(world: World, lengths: dict[Cluster, int]) -> None:
    """These clusters end there."""
    if world.keeps("open clusters are cut"):
        for key in [key for key in world.disk if key[0] == "L" and key[1] in lengths]:
            cluster, number = key[1:]
            if number >= lengths[cluster]:  # type: ignore[operator,index] # of a line: the cluster and its number
                world.disk.put(key, None)


def _write_contents(world: World) -> None:
    memory = world.memory
    moving = memory.moving
    assert moving is not None
    contents = dict(memory.contents)
    spool_ids = {queue_id[0] for queue_id, _ in moving.moved} & set(contents)
    for (spool_id, recipient), _ in sorted(moving.moved):
        if spool_id in spool_ids:
            world.disk.put(("M", spool_id, world.setting.name_of(contents[spool_id], recipient)), True)
    for spool_id in sorted(spool_ids):
        world.disk.put(("D", spool_id), None)  # a file that an abandoned one left is written anew
        world.disk.put(("D", spool_id), contents[spool_id])
    directories = frozenset("s" if spool_ids else "")
    world.know(moving=moving._replace(contents=frozenset(spool_ids), directories=moving.directories | directories))


def _write_lines(world: World) -> None:
    """Behind the committed end of the cluster that grows, or in a new one."""
    memory = world.memory
    moving = memory.moving
    assert moving is not None
    grows = {cluster[2]: (cluster, n) for cluster, n in sorted(memory.lengths) if cluster in memory.growing}
    where: dict[Line, Place] = {}
    directories: set[str] = set()
    made = 0
    for line in sorted(moving.moved):
        area = line[1][-1]
        cluster, length = grows.get(area, (None, 0))
        if cluster is None or length >= world.scenario.lines:
            made += 1
            cluster, length = (moving.number, made, area), 0
            world.disk.put(("C", cluster), True)
            directories.add(area)
        world.disk.put(("L", cluster, length), line)
        where[line], grows[area] = (cluster, length), (cluster, length + 1)
    world.know(
        moving=moving._replace(
            where=frozenset(where.items()),
            lengths=frozenset(grows.values()),
            written=moving.written | {place[0] for place in where.values()},
            directories=moving.directories | directories,
        )
    )


def _mark(world: World) -> None:
    """State bytes of what was over when it began; clusters without a live line go, and what abandoned ones made."""
    memory, disk = world.memory, world.disk
    moving = memory.moving
    assert moving is not None
    used = {place[0] for place in (*world.lines().values(), *dict(moving.where).values()) if place is not None}
    gone = {cluster for cluster in counting_clusters(disk, memory) if cluster not in used}
    known = gone | {cluster for cluster, _ in memory.lengths if cluster not in used}
    marked = set()
    for cluster, number in sorted(moving.owed):
        if cluster not in known and disk.now("C", cluster):
            disk.put(("X", cluster, number), True)
            marked.add(cluster)
    dead = memory.dead if world.keeps("the dead go first") else frozenset()
    for cluster in sorted(gone | dead):
        disk.put(("C", cluster), None)
    disk.sweep()
    world.know(
        moving=moving._replace(
            is_written=True,
            gone=frozenset(known),
            lengths=frozenset(one for one in moving.lengths if one[0] not in known),
            marked=frozenset(marked),
            directories=moving.directories | {cluster[2] for cluster in gone | dead},
        ),
        growing=memory.growing - known,
    )


def sync(world: World, *, fails: bool = False) -> None:
    """5: one barrier over all of that; then the record goes to the journal."""
    memory = world.memory
    moving = memory.moving
    assert moving is not None
    files = moving.written if world.keeps("cluster synced") else frozenset()
    if world.keeps("marks synced"):
        files |= moving.marked
    directories = moving.directories - (set() if world.keeps("silo directory synced") else {"s"})
    if not world.keeps("area directory synced"):
        directories &= {"s"}
    contents = moving.contents if world.keeps("message bytes synced") else frozenset()
    everything = "CLX" if memory.syncs_all and world.keeps("the first one syncs all") else ""
    everything += "MDCLX" if world.scenario.syncs_fs else ""

    def covers(key: tuple[object, ...]) -> bool:
        kind = key[0]
        if kind in everything:  # type: ignore[operator] # a letter
            return True
        if kind == "M":
            return "s" in directories
        if kind == "D":
            return key[1] in contents
        if kind == "C":
            return key[1][2] in directories  # type: ignore[index] # a cluster
        return kind in ("L", "X") and key[1] in files

    if world.keeps("step 5"):
        world.disk.sync(covers, fails=fails)
    if fails or moving.is_spoilt or memory.in_trouble:
        return abandon(world)
    seal(world)
    return None


def seal(world: World) -> None:
    """Its record, behind the places of what is late."""
    memory = world.memory
    moving = memory.moving
    assert moving is not None
    where = dict(moving.where)
    records: set[Places | Commit] = {Commit(moving.number, moving.horizon, tuple(sorted(moving.lengths)))}
    late = tuple(sorted(where[line] for line in moving.late))
    if late and world.keeps("places in the record"):
        records.add(Places(moving.number, late))
    world.know(moving=moving._replace(is_sealed=True), waiting=memory.waiting | records)


def abandon(world: World) -> None:
    """It never was: its own files are dead, what it appended is cut off by the next one, which writes everything anew."""
    memory = world.memory
    moving = memory.moving
    assert moving is not None
    grown = {place[0] for place in dict(moving.where).values()}
    own = {cluster for cluster in grown if cluster[0] == moving.number}
    lengths = dict(memory.lengths)
    growing = memory.growing - grown if world.keeps("what was cut does not grow again") else memory.growing
    world.know(
        moving=None,
        dead=memory.dead | own,
        cut=memory.cut | {(cluster, lengths[cluster]) for cluster in grown - own},
        growing=growing,
        syncs_all=True,
    )


def commit(world: World) -> None:
    """Its record is durable, and the indexes learn it: what was moved rests, but for what was settled meanwhile."""
    memory = world.memory
    moving = memory.moving
    assert moving is not None
    where = dict(moving.where)
    over = {place for line, place in where.items() if line not in memory.young}
    if not world.keeps("settled while moved"):
        over = set()
    moved = {queue_id[0] for queue_id, _ in moving.moved}
    world.know(
        checkpoint=moving.number,
        horizon=moving.horizon,
        lengths=moving.lengths,
        growing=frozenset(cluster for cluster, _ in moving.lengths),
        young=memory.young - moving.moved,
        contents=frozenset(content for content in memory.contents if content[0] not in moved),
        owed=frozenset(place for place in (memory.owed - moving.owed) | over if place[0] not in moving.gone),
        dead=frozenset(),
        cut=frozenset(),
        syncs_all=False,
        moving=None,
    )
    if memory.walk is not None and world.keeps("the walk is told"):
        world.know(walk=memory.walk._replace(unsure=memory.walk.unsure - moved))
    if not world.keeps("the dead go first"):
        for cluster in sorted(memory.dead):
            world.disk.put(("C", cluster), None)
        world.disk.sweep()
