"""Rules of the shared queue beside the way of its mail: time, stores, contents, limits, counts, conversions."""

from __future__ import annotations

from tests.durability.mutation.distributed_rules import shared
from tests.durability.mutation.rule import Rule

DISTRIBUTED_ASIDE_RULES: dict[str, Rule] = {
    # in time
    "shared: a due row is published until the broker has it": shared(
        "due/firing", "                    if is_done:\n", "                    if True:\n"
    ),
    "shared: a slot of due rows goes when all of it was published": shared(
        "due/schedule", "        oldest = min((due.slot for due in left), default=before)\n", "        oldest = before\n"
    ),
    "shared: a slot of due rows is read again before it goes": shared(
        "due/firing",
        "                for due in await self._rows_of(area, slot):\n                    self._learn(schedule, due)\n",
        "                pass\n",
    ),
    "shared: a slot of due rows goes long behind its time": shared(
        "due/firing",
        "        before = slot_of(sure - LATE_S)\n",
        "        before = slot_of(sure)\n",
    ),
    "shared: due rows of a dead server are published": shared(
        "due/firing",
        "        return self._others.runs(due.writer)\n",
        "        return due.writer != self._lease.epoch\n",
    ),
    "shared: what a dead server gave back is published at once": shared(
        "due/firing",
        "        return due.kind is DueKind.GIVEN_BACK and not self._is_others(due) and due.writer != self._lease.epoch\n",
        "        return False\n",
    ),
    "shared: what is left anew for the same time is published again": shared(
        "due/schedule", "        row = (*due.key, due.writer)\n", "        row = (*due.key, 0)\n"
    ),
    "shared: the index of a message goes whichever clock wrote it": shared(
        "settle/settling",
        "            until = kept_time(self._clock.now()) + CLOCKS_DIFFER_S  #",
        "            until = kept_time(self._clock.now()) + 0.001  #",
    ),
    "shared: the browse start stops at what lives": shared(
        "browse/starts",
        "        while start < last and not await self._lives(area, start):\n",
        "        while start < last:\n",
    ),
    "shared: the browse start stops at what can't be read": shared(
        "browse/starts", "                if page.shares or page.gap is not None:\n", "                if page.shares:\n"
    ),
    "shared: the browse start stays behind the present slice": shared(
        "browse/starts",
        "        last = slice_start(now - longest - GRACE_S, window)\n",
        "        last = slice_start(now + window, window)\n",
    ),
    "shared: the browse start stays behind slices of former settings": shared(
        "browse/starts",
        "        last = slice_start(now - longest - GRACE_S, window)\n",
        "        last = slice_start(now - window - GRACE_S, window)\n",
    ),
    "shared: the clean-up removes all rows of slices of former settings": shared(
        "browse/starts",
        "            end, late = start + self._view().longest_window_s + LATE_S, now + LATE_S\n",
        "            end, late = start + window + LATE_S, now + LATE_S\n",
    ),
    "shared: the clean-up stays behind the browse start": shared(
        "browse/starts",
        "        last = slice_start(self._browse[area] - self._keep_s, window)\n",
        "        last = slice_start(self._now() - self._keep_s, window)\n",
    ),
    "shared: the clean-up leaves late rows alone": shared(
        "browse/starts", "((ENQUEUED, end), ", "((ENQUEUED, max(end, late)), "
    ),
    "shared: the clean-up removes all marks": shared("browse/starts", "(DELETED, max(end, late))", "(DELETED, end)"),
    "shared: what is removed is over by the database's clock too": shared(
        "identity/clock", "    return min(now(), await rows.now())\n", "    return now()\n"
    ),
    "shared: rows of former windows are found": shared(
        "view/change", "        min(view.slice_window_s for view in history),\n", "        history[-1].slice_window_s,\n"
    ),
    "shared: rows of former buckets are found": shared(
        "view/change", "        max(view.bucket_count for view in history),\n", "        history[0].bucket_count,\n"
    ),
    "shared: a window divides the one before": shared(
        "view/change", "    if old.slice_window_s % new.slice_window_s:", "    if False:"
    ),
    "shared: no bucket goes": shared("view/change", "    if new.bucket_count < old.bucket_count:\n", "    if False:\n"),
    "shared: what waits for long is carried": shared(
        "browse/carrying", "            moved += await self._carry(area, MOST - moved)\n", "            moved += 0\n"
    ),
    "shared: a turn carries a bounded number": shared(
        "browse/carrying",
        "            if moved >= most or self._looking.is_closed or not self._is_sure():\n",
        "            if self._looking.is_closed or not self._is_sure():\n",
    ),
    "shared: without a lease that is sure nothing is carried": shared(
        "browse/carrying",
        "        if self._reactor.seconds() < self._rests_until or not self._is_sure():\n",
        "        if self._reactor.seconds() < self._rests_until:\n",
    ),
    "shared: what is out is not carried": shared(
        "hand/held", "held.name == name and number not in self.out", "held.name == name"
    ),
    "shared: the due row of what was carried goes": shared(
        "settle/settling", "        if batch.is_closed and share.due_at > now + SLOT_S:\n", "        if False:\n"
    ),
    "shared: a young content is not swept": shared(
        "sweep/sweeping", "int(found[1]) < now // DAY_S - 1", "int(found[1]) < now // DAY_S + 9"
    ),
    "shared: a content that a share of the index has is not swept": shared(
        "sweep/naming", "        if found.condition in _MAY_LIVE:\n", "        if False:\n"
    ),
    "shared: a content whose rows may be on their way is not swept": shared(
        "sweep/naming", "            return name.place.slice_start > now - OLD_S\n", "            return False\n"
    ),
    "shared: a content of what was closed lately is not swept": shared(
        "sweep/naming", '        if any(_is_young(row["closed_at"], now) for row in indexed):\n', "        if False:\n"
    ),
    "shared: a content of what moved is not swept": shared(
        "sweep/naming", "        return Marks(marks).is_any_moved(name.enqueue_id)\n", "        return False\n"
    ),
    "shared: a content that a share has is not swept": shared(
        "sweep/sweeping", "                self._suspects.pop(living.share.blob.key, None)\n", "                pass\n"
    ),
    "shared: where a share can't be read nothing is swept": shared(
        "sweep/sweeping", "        while self._suspects and not self._gaps:\n", "        while self._suspects:\n"
    ),
    "shared: it is asked once more before a content is swept": shared(
        "sweep/sweeping",
        "            if not await self._naming.is_named(spool_id, key, now):\n                if",
        "            if True:\n                if",
    ),
    "shared: the index goes before a content that is swept": shared(
        "sweep/sweeping",
        "                if await self._naming.is_index_left(spool_id, now):\n",
        "                if False:\n",
    ),
    "shared: one server sweeps": shared("sweep/sweeping", " or not await self._lease.is_oldest():\n", ":\n"),
    # beside
    "shared: a queue is in one bucket and one virtual host": shared(
        "identity/agreements", "    if known not in (None, place):\n", "    if False:\n"
    ),
    "shared: a command whose clock is wrong writes nothing": shared(
        "stopped/alone", "        await refuse_wrong_clock(reached.stores.rows, reached.now)\n", ""
    ),
    "shared: a conversion sees what a clock behind would not": shared(
        "conversion/living", "max(look.now(), await look.rows.now())", "look.now()"
    ),
    "shared: a conversion sees what a clock ahead has put in": shared(
        "conversion/living", "max(look.view.reading().slice_window_s, CLOCKS_DIFFER_S)", "look.view.reading().slice_window_s"
    ),
    "shared: numbers of acts that converted mail is marked with are not given out": shared(
        "conversion/build", "        if self._last_act:\n", "        if False:\n"
    ),
    "shared: a number is greater than those known here": shared(
        "identity/epochs", "            number = max(last, above) + 1\n", "            number = last + 1\n"
    ),
    "shared: an epoch is used when its row is durable": shared("identity/epochs", "        await self._write(row)\n", ""),
    "shared: a server looks at the gate": shared(
        "provider", "parts.lease.serve(parts.ids.start)", "parts.lease.acquire(await parts.ids.start())"
    ),
    "shared: a server whose lease was void looks at the gate": shared(
        "duties", "self._lease.serve(self._ids.start)", "self._lease.acquire(await self._ids.start())"
    ),
    "shared: a server that is shut out acquires no lease": shared(
        "identity/lease", "        await refuse_shut(self._rows)  # first", "        # first"
    ),
    "shared: a server looks at the gate behind its lease": shared(
        "identity/lease", "                if is_to_serve:\n", "                if False:\n"
    ),
    "shared: a conversion sees the servers behind its gate": shared(
        "conversion/shutting", "        await alone.check()\n", "        pass\n"
    ),
    "shared: a conversion shuts servers out": shared(
        "conversion/shutting", "    was = await set_gate(rows, found, wanted)\n", "    was = ConversionGate.OPEN\n"
    ),
    "shared: a conversion goes into a queue without mail": shared(
        "conversion/build", "        if found is ConversionGate.OPEN and not await is_empty(look):\n", "        if False:\n"
    ),
    "shared: what a conversion left is removed": shared(
        "conversion/build", "            self._not_before = await empty(stores, look)\n", "            pass\n"
    ),
    "shared: a conversion raises the epoch": shared("conversion/build", "        await self._raise_epoch()\n", ""),
    "shared: a conversion removes no content before its mark": shared(
        "conversion/emptying",
        "        await until_answered(rows.write, [removed_mark(share.name, WHOLE, now), *note_of(share, now)])\n",
        "",
    ),
    "shared: a conversion leaves notes for triggers that nobody was told of": shared(
        "conversion/emptying", ", *note_of(share, now)])\n", "])\n"
    ),
    "shared: a queue that was lost is filled again": shared(
        "browse/refilling",
        "                await self._refill(wanted)\n",
        "                await self._stores.broker.declare([queue_of(wanted.value)])\n",
    ),
    "shared: what is filled in again is a suspect": shared(
        "browse/refilling", "is_suspect=share.area is Area.INCOMING,", "is_suspect=False,"
    ),
    "shared: a refill leaves bounces to their maker": shared(
        "browse/refilling", "[share for share in shares if not _may_be_its_makers(share, now)]", "shares"
    ),
    "shared: a refill has what may have been published by a clock that is ahead": shared(
        "browse/refilling", " if living.share.due_at <= now + CLOCKS_DIFFER_S]", " if living.share.due_at <= now]"
    ),
    "shared: a refill brings back bounces that were just made": shared(
        "browse/refilling",
        "        await together(self._stores.rows.write([due_row(one, now)]) for one in due)\n"
        "        self._firing.add(due)\n",
        "        pass\n",
    ),
    "shared: a refill that was cut off is done by another server": shared(
        "identity/tasks",
        "        return owner == self._lease.epoch or not await self._lease.is_live(owner)\n",
        "        return owner == self._lease.epoch\n",
    ),
    "shared: what is wanted meanwhile is filled in once more": shared(
        "identity/tasks",
        '        return await self._rows.change(TASKS, (name,), {"owner": DONE}, mine) is None\n',
        '        await self._rows.change(TASKS, (name,), {"owner": DONE}, mine)\n        return True\n',
    ),
    "shared: new mail that is found without a trigger is a suspect": shared(
        "browse/forgotten", "is_suspect=True)", "is_suspect=False)"
    ),
    "shared: new mail without a trigger is found": shared(
        "browse/forgotten", "            if not await self._is_claimed(share):\n", "            if False:\n"
    ),
    "shared: a store that is left alone is not asked": shared(
        "circuits/guarded", "        if refusal is not None:\n            return fail(refusal)\n", ""
    ),
    "shared: three failures open a circuit": shared(
        "circuits/circuit",
        "            if self._failures >= FAILURES or failure.is_full:\n",
        "            if failure.is_full:\n",
    ),
    "shared: a full store opens its circuit at once": shared(
        "circuits/circuit",
        "            if self._failures >= FAILURES or failure.is_full:\n",
        "            if self._failures >= FAILURES:\n",
    ),
    "shared: a full store is read": shared(
        "circuits/circuit",
        "        if failure is None or (failure.is_full and not needs_room):\n",
        "        if failure is None:\n",
    ),
    "shared: without a store no mail is taken": shared(
        "admission", "            if circuit.failure is not None:\n", "            if False:\n"
    ),
    "shared: without a lease no mail is taken": shared(
        "admission", "        if not self.lease.is_sure:\n            return Refused(LEASE)\n", ""
    ),
    "shared: without a lease nothing is handed out": shared(
        "admission", "        if not self.lease.is_sure:\n            return LEASE\n", ""
    ),
    "shared: a clock that is off takes no mail": shared(
        "admission", "        if self.clock.is_off:\n", "        if False:\n"
    ),
    "shared: contents missing in a row stop mail": shared(
        "content/absent", "        if len(self.keys) >= MOST:\n", "        if False:\n"
    ),
    "shared: a content is missing while its share lives": shared(
        "content/stored", "            if found is None and await self._lives(share):\n", "            if found is None:\n"
    ),
    "shared: a content has its sum": shared(
        "content/stored", "        if self._left <= 0 and self._sum.digest() != self._sha256:\n", "        if False:\n"
    ),
    "shared: what is found ends the row of missing contents": shared(
        "content/stored", "        self._absent.found()\n        return ahead\n", "        return ahead\n"
    ),
    "shared: what came in is kept": shared(
        "commits", "            parts.kept.keep(draft.spool_id, draft.content())\n", "            pass\n"
    ),
    "shared: what is kept is bounded": shared(
        "content/kept", "        while self._used > self._limit:\n", "        while False:\n"
    ),
    "shared: what is kept goes with its message": shared("assembly", "        kept.forget(spool_id)\n", ""),
    "shared: what is here is not fetched": shared("content/ahead", " or self._kept.has(spool_id):\n", ":\n"),
    "shared: what is not tried is not fetched": shared(
        "content/ahead", "        is_needed = share.area in NEEDED and share", "        is_needed = share"
    ),
    "shared: what is fetched ahead is bounded": shared(
        "content/ahead", "            if self.used_bytes + size > AHEAD_BYTES:\n", "            if False:\n"
    ),
    "shared: so many are fetched at once": shared(
        "content/ahead",
        "while self._line and len(self._coming) < AT_A_TIME and self._may_ask():\n",
        "while self._line and self._may_ask():\n",
    ),
    "shared: while the store is left alone nothing is fetched ahead": shared(
        "content/ahead",
        "while self._line and len(self._coming) < AT_A_TIME and self._may_ask():\n",
        "while self._line and len(self._coming) < AT_A_TIME:\n",
    ),
    "shared: what left the hand is forgotten": shared(
        "content/ahead", "            if not self._is_here(spool_id):\n", "            if False:\n"
    ),
    "shared: what left the hand while it was fetched is forgotten": shared(
        "content/ahead",
        "        elif content is not None and self._is_here(spool_id) and not self._is_closed:\n",
        "        elif content is not None and not self._is_closed:\n",
    ),
    "shared: the hand tells what has left it": shared(
        "hand/hand", "        if not known.entries:\n            self._gone(known.message.spool_id)\n", ""
    ),
    "shared: a part grows by what is free": shared(
        "limits/cutting", "        new = min(goal, part + max(0, need.limit - taken))\n", "        new = goal\n"
    ),
    "shared: what is in use is not given back": shared(
        "limits/cutting", "        new = max(goal, min(part, need.used))\n", "        new = goal\n"
    ),
    "shared: what a dead server may have used counts": shared(
        "limits/cutting",
        "            spent = added(spent, Spent(division.members[epoch].part, now + need.lasts_s, need.is_even))\n",
        "            pass\n",
    ),
    "shared: what a server used that leaves counts": shared(
        "limits/cutting",
        "        spent = added(spent, Spent(need.used, now + need.lasts_s, need.is_even))\n",
        "        pass\n",
    ),
    "shared: a dead server has no part": shared("limits/cutting", "if epoch not in dead}", "if True}"),
    "shared: a part counts while the lease is sure": shared(
        "limits/part",
        "        if self.epoch != lease.epoch or not lease.is_sure or lease.elapsed() > self._believed_until:\n",
        "        if self.epoch != lease.epoch or lease.elapsed() > self._believed_until:\n",
    ),
    "shared: a part is of its epoch": shared(
        "limits/part",
        "        if self.epoch != lease.epoch or not lease.is_sure or lease.elapsed() > self._believed_until:\n",
        "        if not lease.is_sure or lease.elapsed() > self._believed_until:\n",
    ),
    "shared: a part is believed until its row may go": shared(
        "limits/part",
        "        if self.epoch != lease.epoch or not lease.is_sure or lease.elapsed() > self._believed_until:\n",
        "        if self.epoch != lease.epoch or not lease.is_sure:\n",
    ),
    "shared: a part that is to shrink is not used": shared(
        "limits/part", "        return min(self.size, self._goal)\n", "        return self.size\n"
    ),
    "shared: a write without an answer counts as the lesser": shared(
        "limits/part",
        "self.size, self.seen, self.is_doubtful = min(self.size, most), seen, True\n",
        "self.seen, self.is_doubtful = seen, True\n",
    ),
    "shared: behind a write without an answer a refusal tells nothing": shared(
        "limits/keeping", "            if not before:\n", "            if True:\n"
    ),
    "shared: behind a write without an answer a read tells nothing": shared(
        "limits/keeping",
        "        if part.seen is not None and (part.is_doubtful or part.is_fresh):\n",
        "        if part.seen is not None and part.is_fresh:\n",
    ),
    "shared: no part is written under another lease": shared(
        "limits/keeping",
        "            if not self._lease.is_sure or self._lease.epoch != epoch:\n",
        "            if False:\n",
    ),
    "shared: each row of a limit has a version": shared(
        "limits/keeping", "attrs.evolve(wanted, version=self._version_behind(seen)).encode()", "wanted.encode()"
    ),
    "shared: a part that is not used is given back": shared(
        "limits/keeping",
        "await (self._leave(part) if part.is_unused(self._lease.elapsed()) else self._keep(part))",
        "await self._keep(part)",
    ),
    "shared: a part that came late is given back": shared(
        "limits/keeping", "        if name not in self.parts and epoch in seen.division.members:\n", "        if False:\n"
    ),
    "shared: counts are written down under a lease that is sure": shared(
        "counts/keeping", "        if not self.epoch or not self._lease.is_sure:\n", "        if not self.epoch:\n"
    ),
    "shared: a recount counts where nothing changed meanwhile": shared(
        "browse/recounting",
        "            if numbers is not None and own.changes == changes:\n",
        "            if numbers is not None:\n",
    ),
    "shared: a recount counts where other servers changed nothing": shared(
        "browse/recounting",
        "            if keeping.epoch != epoch or not is_same:\n",
        "            if keeping.epoch != epoch:\n",
    ),
    "shared: a recount waits for the other servers": shared(
        "browse/recounting", "        if not read or not await self._others_have_written():\n", "        if not read:\n"
    ),
    "shared: behind a dead server all is counted anew": shared(
        "browse/recounting", "        if gone and await self._is_first():\n", "        if False:\n"
    ),
    "shared: who has a share does not say that it has it not": shared(
        "hand/enquiries", "if name in self._hand.shares or name in", "if name in"
    ),
    "shared: what is under way is not denied": shared("hand/enquiries", " or name in self._hand.hidden or (", " or ("),
    "shared: who is asked too much says nothing": shared(
        "hand/enquiries", "(len(self._denied) >= MOST_DENIED and not is_known)", "False"
    ),
    "shared: who has denied a share trusts no trigger of it": shared(
        "hand/owning", "        is_new = is_new and not self._enquiries.has_denied(held.name.enqueue_id)\n", ""
    ),
    "shared: each server answers for itself alone": shared(
        "hand/waiting", "self.may_have_it -= {epoch}", "self.may_have_it = frozenset()"
    ),
    "shared: what nobody else has does not wait": shared(
        "hand/waiting", "            one.deny(epoch)\n", "            pass\n"
    ),
}
