"""Rules of the shared queue: how mail gets in, whose it is, and how it ends."""

from __future__ import annotations

from tests.durability.mutation.rule import Rule


def shared(name: str, old: str, new: str) -> Rule:
    """In this module of the shared queue."""
    return Rule(f"mailismus/queue/providers/distributed/{name}.py", old, new)


DISTRIBUTED_RULES: dict[str, Rule] = {
    # in
    "shared: a content is durable before its rows": shared(
        "enqueue/steps",
        "            await self._until_answered(lambda: self._stores.objects.put(arrived.blob.key, body), end)\n",
        "            self._stores.objects.put(arrived.blob.key, body).addErrback(lambda _: None)\n",
    ),
    "shared: a 250 waits for its rows": shared(
        "enqueue/steps",
        "                await self._write([*plan.writes, *beside], end, must_be_known=bool(beside))\n",
        "                Deferred.fromCoroutine(\n"
        "                    self._write([*plan.writes, *beside], end, must_be_known=bool(beside))\n"
        "                ).addErrback(lambda _: None)\n",
    ),
    "shared: a 250 waits for the broker, or a due row": shared(
        "enqueue/steps",
        "await self._in_time(self._stores.broker.publish(publication.queue, publication.body), end - FOR_ROW_S)\n",
        "self._stores.broker.publish(publication.queue, publication.body).addErrback(lambda _: None)\n",
    ),
    "shared: without the broker there is a due row": shared(
        "enqueue/steps",
        "            await self._until_answered(lambda: self._stores.rows.write([row]), end)\n        return due\n",
        "        return due\n",
    ),
    "shared: rows that came late are written anew": shared(
        "enqueue/steps", "                if clock.elapsed() - begun <= LATE_S:\n", "                if True:\n"
    ),
    "shared: a report is repeated until it is answered": shared(
        "enqueue/steps", "                until = math.inf if must_be_known else end\n", "                until = end\n"
    ),
    "shared: a report that came late is none where another server has made one": shared(
        "enqueue/steps",
        "            if beside and not may_end() and await self._has_another_ended(beside):\n",
        "            if False:\n",
    ),
    "shared: a report that came late is one where no other server has made one": shared(
        "enqueue/steps", "not may_end() and await self._has_another_ended(beside)", "not may_end()"
    ),
    "shared: a report has an heir": shared(
        "enqueue/steps", "heirs_in_s = INSTEAD_S if beside else None", "heirs_in_s = None"
    ),
    "shared: what was refused is marked removed": shared(
        "commits",
        "            self._refuse([share for refusal in refusals for share in refusal.unsure], told)\n",
        "            self._show([share.name.enqueue_id for refusal in refusals for share in refusal.unsure])\n",
    ),
    "shared: what was refused beside another message is marked removed": shared(
        "commits",
        "            self._refuse([share for one in entered for share in (*one.plan.shares, *one.stale)], told)\n",
        "            self._show([share.name.enqueue_id for one in entered for share in (*one.plan.shares, *one.stale)])\n",
    ),
    "shared: what was written too late is marked removed": shared(
        "commits",
        "        self._refuse([share for one in entered for share in one.stale])\n",
        "        self._show([share.name.enqueue_id for one in entered for share in one.stale])\n",
    ),
    "shared: nothing is handed out before its commit is told": shared(
        "assembly", "        hand.hide(shares)\n", "        pass\n"
    ),
    "shared: a report is refused whose bounces another server may have": shared(
        "commits",
        "        if is_good and submissions and not self._may_end(settled):\n",
        "        if False:\n",
    ),
    "shared: a report is refused whose bounces another server has ended": shared(
        "commits",
        "            if sum(len(batch.ended) for _, batch in batches) < sum(map(len, settled.values())):\n",
        "            if False:\n",
    ),
    "shared: a report is refused under a lease that is not sure": shared(
        "assembly",
        "        return lease.is_sure and hand.may_try(spool_id, terms.elapsed())\n",
        "        return hand.may_try(spool_id, terms.elapsed())\n",
    ),
    "shared: a bounce that moved once more is not kept": shared(
        "settle/settling",
        "            else:\n                self._keep_bounces(batch, lost)\n",
        "            self._keep_bounces(batch, lost)\n",
    ),
    "shared: a bounce made under a void lease is not kept": shared(
        "settle/settling", " and numbers and self._owning.has_kept(due.writer):\n", " and numbers:\n"
    ),
    "shared: who began since the last look is taken to run": shared(
        "identity/lease", "        return epoch in self.live or epoch > self.newest\n", "        return epoch in self.live\n"
    ),
    # out
    "shared: an ack waits for the mark": shared(
        "settle/settling",
        "                    await self.write_surely(batch.writes)\n                    is_over = ",
        "                    Deferred.fromCoroutine(self.write_surely(batch.writes))\n                    is_over = ",
    ),
    "shared: an ack waits for the content": shared(
        "settle/settling",
        "            freeing = Deferred.fromCoroutine(self._free(batch.leaving.share, acks, has_index=has_index))\n",
        "            _ack(acks)\n"
        "            freeing = Deferred.fromCoroutine(self._free(batch.leaving.share, (), has_index=has_index))\n",
    ),
    "shared: the index goes before the content": shared(
        "settle/settling",
        "        if has_index:  # first",
        "        await self._stores.objects.remove(share.blob.key)\n        if has_index:  # first",
    ),
    "shared: the content goes with the last share": shared(
        "settle/settling",
        "        return batch.ends_message or (indexed is not None and batch.is_closed and not open_shares(indexed))\n",
        "        return batch.is_closed\n",
    ),
    "shared: a message of which something moves is not over with its share": shared(
        "settle/plan", "        is_whole_message = is_whole_message and not batch.shares\n", ""
    ),
    "shared: a message is over with a share that is all of it": shared(
        "hand/held",
        "return not self.is_split and self.whole.origin is None and len(message.entries) == message.recipient_count\n",
        "return True\n",
    ),
    "shared: a settlement without an answer is repeated": shared(
        "settle/settling",
        "            except (NotDone, Unanswered) as failure:\n",
        "            except NotDone as failure:\n",
    ),
    "shared: what was settled late moves once more": shared(
        "settle/settling", "late=self._clock.elapsed() - begun > LATE_S) or is_over\n", "late=False) or is_over\n"
    ),
    "shared: what is deferred has a due row": shared(
        "settle/plan",
        "        writes += [due_row(waiting, now), index_row(new, now)]\n",
        "        writes += [index_row(new, now)]\n",
    ),
    "shared: what is deferred is in the index": shared(
        "settle/plan",
        "        writes += [due_row(waiting, now), index_row(new, now)]\n",
        "        writes += [due_row(waiting, now)]\n",
    ),
    "shared: what is not new is claimed": shared(
        "hand/owning",
        "        found = await self._claims.claim(held.name.enqueue_id)\n",
        "        found = ClaimAnswer.NONE\n",
    ),
    "shared: a claim of a server with a lease counts": shared(
        "identity/claims",
        "                if isinstance(owner, int) and owner != _NOBODY and await self._lease.is_live(owner):\n",
        "                if False:\n",
    ),
    "shared: a claim without an answer may be another's before": shared(
        "identity/claims",
        "                    return ClaimAnswer.OURS if is_sure else ClaimAnswer.FREED\n",
        "                    return ClaimAnswer.OURS\n",
    ),
    "shared: a claim that is in use again is not given up": shared(
        "identity/claims", "            if is_unused():\n", "            if True:\n"
    ),
    "shared: who has others of a round keeps the bounce that led to them": shared(
        "hand/loading", "        if waiting.delivered.is_lost and not beside:", "        if waiting.delivered.is_lost:"
    ),
    "shared: what was claimed and not read is given up": shared(
        "hand/owning", "            self.give_up(held.name)\n", "            pass\n"
    ),
    "shared: nothing is claimed without a lease that is sure": shared(
        "identity/claims", "        if not self.are_sure:\n", "        if False:\n"
    ),
    "shared: a claim of a former epoch does not count": shared(
        "hand/owning",
        "        if found is ClaimAnswer.OTHERS or not self.has_kept(epoch):\n",
        "        if found is ClaimAnswer.OTHERS:\n",
    ),
    "shared: a lease is ended before its work is left to others": shared(
        "duties",
        "            await self._lease.release()  # first: what is being claimed is not ours any more\n"
        '            await self._leave("The clock of this server is far behind: it leaves its work to other servers.")\n',
        '            await self._leave("The clock of this server is far behind: it leaves its work to other servers.")\n'
        "            await self._lease.release()\n",
    ),
    "shared: it is asked before each attempt whether it may be made": shared(
        "provider",
        "        return not parts.admission.withheld() and parts.hand.may_try(spool_id, parts.elapsed())\n",
        "        return True\n",
    ),
    "shared: nothing is begun while it is withheld": shared(
        "provider",
        "        return not parts.admission.withheld() and parts.hand.may_try(spool_id, parts.elapsed())\n",
        "        return parts.hand.may_try(spool_id, parts.elapsed())\n",
    ),
    "shared: nothing is handed out while it is withheld": shared(
        "provider", "        if self.parts.admission.withheld():\n            return succeed([])\n", ""
    ),
    "shared: a trigger is trusted for a while alone": shared(
        "hand/held", "elapsed < self.new_since + TRUST_S)", "elapsed < self.new_since + 1e9)"
    ),
    "shared: a trigger that waited here for long needs a claim": shared(
        "hand/owning", "is_new and self._clock.elapsed() < new_since + CLAIM_AFTER_S:\n", "is_new:\n"
    ),
    "shared: what is here for long is claimed": shared("duties", "            self._owning.look()\n", ""),
    "shared: a trigger of a row is not trusted": shared(
        "hand/loading",
        "        is_new = is_incoming and not waits and not trigger.is_from_row and trigger.numbers is None\n",
        "        is_new = is_incoming and not waits\n",
    ),
    "shared: new mail that another server was told of waits": shared(
        "hand/loading", "        if waiting.waits:\n", "        if False:\n"
    ),
    "shared: new mail that a dead server was told of waits for none that has started since": shared(
        "hand/waiting",
        "live if self.may_have_it is None else self.may_have_it & live",
        "live",
    ),
    "shared: new mail waits behind no claims": shared(
        "hand/loading",
        "        (self._new if waiting.is_new else self._others).add(waiting)\n",
        "        self._others.add(waiting)\n",
    ),
    "shared: what is over is not left to its last owner": shared(
        "hand/loading",
        "        if found.condition is Condition.OVER:\n            waiting.held",
        "        if False:\n            waiting.held",
    ),
    "shared: where the broker was surely not told a share is due at once": shared(
        "enqueue/steps", "in_s, kind = 0.0, DueKind.WAITS", "in_s, kind = UNSURE_S, DueKind.INSTEAD"
    ),
    "shared: a report is refused where its server stood still behind its content": shared(
        "enqueue/steps", "            if not may_end():\n", "            if False:\n"
    ),
    "shared: bounces of a server that was started anew wait for a report on its way": shared(
        "due/firing",
        "        return min(due.due_at, self._now() + REPLAYED_S) if is_report_near else 0.0\n",
        "        return 0.0\n",
    ),
    "shared: what is claimed late is read again": shared(
        "hand/owning",
        "            if await self.claim(held) is Owned.NOW:\n",
        "            if await self.claim(held) is None:\n",
    ),
    "shared: what another server has comes again": shared(
        "hand/owning",
        "        await self._rows.write([due_row(due, now)])\n"
        "        self._firing.add([due])\n"
        "        for delivered in deliveries:\n",
        "        for delivered in deliveries:\n",
    ),
    "shared: what rests on a trigger is lost with it": shared(
        "hand/hand", "            if held.rests_on_trigger and not held.deliveries:\n", "            if False:\n"
    ),
    "shared: what came back lost leaves the hand": shared(
        "hand/hand",
        "(held.basis is not Basis.NOTHING and queue_id.number in held.left)",
        "queue_id.number in held.left",
    ),
    "shared: what came back and others have ended leaves the hand": shared(
        "hand/hand",
        "(held.basis is not Basis.NOTHING and queue_id.number in held.left)",
        "held.basis is not Basis.NOTHING",
    ),
    "shared: what others have ended is not tried": shared("hand/hand", "        lives = False\n", "        lives = True\n"),
    "shared: a void lease loses the hand": shared("duties", "        self._hand.lose_all()\n", ""),
    "shared: a void lease gives the triggers back": shared(
        "duties",
        "        await together(consumer.stop() for consumer in self._consumers)\n",
        "",
    ),
    "shared: a lease is sure from the begin of its renewal on": shared(
        "identity/lease",
        "            self._sure_until = begun + SURE_S\n            return True\n",
        "            self._sure_until = self.elapsed() + SURE_S\n            return True\n",
    ),
    "shared: a lease is sure for a while alone": shared(
        "identity/lease", "        return self.elapsed() < self._sure_until\n", "        return self._sure_until > 0\n"
    ),
    "shared: a start ends the leases before it": shared(
        "identity/lease", "            if name == self.server:\n", "            if False:\n"
    ),
    "shared: what moves on is claimed": shared(
        "settle/settling",
        "        owned = await self._surely(lambda: self._owning.claim(held))\n        if owned is Owned.NOW:",
        "        owned = Owned.STILL\n        if owned is Owned.NOW:",
    ),
    "shared: what moves on is read behind its claim": shared(
        "settle/settling",
        "        if owned is Owned.NOW:\n            await self._surely(",
        "        if False:\n            await self._surely(",
    ),
    "shared: what another server has is not carried": shared(
        "settle/settling",
        "            owned = await self._owning.claim(held)\n            if owned is not",
        "            owned = await self._owning.claim(held)\n            owned = Owned.NOW\n            if owned is not",
    ),
    "shared: what does not count against another outcome is ended": shared(
        "settle/settling",
        "        todo, ended = list(losers_of(batch, marks)), set[Rival]()\n",
        "        todo, ended = list[Rival](), set[Rival]()\n",
    ),
    "shared: so is what goes on with it": shared(
        "settle/settling",
        "        return [] if goes_to is None else [Rival(goes_to, rival.number)]\n",
        "        return []\n",
    ),
    "shared: what is gone by the mark of its share is gone where it moved": shared(
        "settle/settling",
        "        if gone:\n            self._counts.doubt([share.name])\n",
        "        if False:\n            self._counts.doubt([share.name])\n",
    ),
    "shared: gone counts before a bounce and a move": shared(
        "format/marks", "        return None if self.is_gone else self.goes_to\n", "        return self.goes_to\n"
    ),
    "shared: a bounce counts before another move": shared(
        "format/marks",
        '            goes_to = row["moved_to"] if row["bounced_to"] is None else row["bounced_to"]\n',
        '            goes_to = row["bounced_to"] if row["moved_to"] is None else row["moved_to"]\n',
    ),
    "shared: the mark of an entry counts before that of its share": shared(
        "format/marks",
        "        return self._marks.get((name, number)) or self._marks.get((name, WHOLE))\n",
        "        return self._marks.get((name, WHOLE)) or self._marks.get((name, number))\n",
    ),
    "shared: a share that moved counts while its origin says so": shared(
        "hand/reading", "        elif mark.successor != share.name.enqueue_id:\n", "        elif False:\n"
    ),
    "shared: a share waits whose origin is there without a mark": shared(
        "hand/reading",
        "            if await rows_of(rows, ENQUEUED, origin):\n                return None\n",
        "            pass\n",
    ),
    "shared: a mark that can't be read decides nothing": shared(
        "hand/reading", "        if mark is None or mark.is_unreadable:\n", "        if mark is None:\n"
    ),
    "shared: marks are read before rows": shared(
        "hand/reading",
        "    marks = Marks(await rows_of(rows, DELETED, name))\n    found = await rows_of(rows, ENQUEUED, name)\n",
        "    found = await rows_of(rows, ENQUEUED, name)\n    marks = Marks(())\n",
    ),
    "shared: marks of new mail are read that came in here": shared(
        "hand/reading",
        "    return await _found(rows, share, Marks(await rows_of(rows, DELETED, share.name)))\n",
        "    return await _found(rows, share, Marks(()))\n",
    ),
    "shared: rows are read of what others may have had": shared(
        "hand/loading",
        "        if not (waiting.is_new and held.basis is Basis.NEW):\n",
        "        if share is None and not (waiting.is_new and held.basis is Basis.NEW):\n",
    ),
    "shared: marks are read of what others were told of first": shared(
        "hand/loading", "        if not (waiting.is_new and held.basis is Basis.NEW):\n", "        if False:\n"
    ),
    "shared: marks are read of new mail that is old": shared(
        "hand/loading", "made_at(held.name.enqueue_id)) < YOUNG_S", "made_at(held.name.enqueue_id)) < 1e12"
    ),
    "shared: marks are read of new mail whose head has a note": shared(
        "hand/reading", 'any(row["marked_at"] is not None for row in found)', "False"
    ),
    "shared: marks leave a note": shared(
        "settle/plan",
        "    if not (leaving.is_noted or (leaving.had_first and ends_message)):\n",
        "    if not (leaving.is_noted or leaving.had_first):\n",
    ),
    "shared: who was not told first leaves a note when the message is over": shared(
        "settle/plan",
        "    if not (leaving.is_noted or (leaving.had_first and ends_message)):\n",
        "    if not (leaving.is_noted or ends_message):\n",
    ),
    "shared: mail that came in here is looked for in the marks when it is told of again": shared(
        "hand/loading", "is_first = is_young and not self._arrived.is_own(held.name.enqueue_id)", "is_first = is_young"
    ),
    "shared: what was refused and told leaves a note": shared(
        "commits", "if share.name in told else ()", "if False else ()"
    ),
    "shared: what was refused and not told leaves no note": shared(
        "commits", "if share.name in told else ()", "if True else ()"
    ),
    "shared: what was told beside a refused message leaves a note": shared(
        "commits",
        "            told = [share.name for one in entered for share in one.plan.shares]\n",
        "            told = []\n",
    ),
    "shared: a note goes with its rows": shared(
        "format/marks", '{"marked_at": at}, share.enqueued_at)', '{"marked_at": at}, at)'
    ),
    "shared: what came in here is known for a minute": shared(
        "hand/arrived", "        return share if self._elapsed() < since + FRESH_S else None\n", "        return share\n"
    ),
    "shared: what moved and lost is marked removed": shared(
        "hand/loading", "            if found.lost:\n", "            if False:\n"
    ),
    "shared: a message that is over keeps no index for what comes late": shared(
        "hand/losing", 'all(row["closed_at"] is not None for row in indexed)', "False"
    ),
    "shared: the index of what lives stays when a share of it has lost": shared(
        "hand/losing", 'all(row["closed_at"] is not None for row in indexed)', "True"
    ),
    "shared: a stop that waits no longer is no failure": shared("regular", "StoreFailure | CancelledError", "StoreFailure"),
    "shared: an act that fails gives up what it claimed": shared(
        "settle/settling", "            if not is_known and name", "            if False and name"
    ),
    "shared: what an act brought and did not use leaves the hand": shared(
        "provider",
        "            hand.put_back([one for message in ours for one in message.queue_ids() if one not in here])\n",
        "",
    ),
    "shared: what a trigger brought too stays in the hand": shared(
        "hand/hand", "not (held.deliveries or self.is_out(queue_id))", "not self.is_out(queue_id)"
    ),
    "shared: what waits is hastened once the store is well": shared(
        "provider", "                await deferLater(self.parts.reactor, AGAIN_S)\n", "                return\n"
    ),
    "shared: a start hastens no bounce that its maker has": shared(
        "browse/hurry", "now + WAIT_S if area is Area.BOUNCES else now", "now"
    ),
    "shared: a clock set back hastens no bounce that its maker has": shared(
        "browse/hurry", "now + WAIT_S if stays_with_maker(living.share) else now", "now"
    ),
    "shared: new mail that is hastened is suspect": shared("browse/hurry", "is_suspect=is_new", "is_suspect=False"),
    "shared: what a start finds far ahead waits for a report on its way": shared(
        "due/firing", "schedule.add_early(due, self._early_at(due))", "schedule.add_early(due, 0.0)"
    ),
    "shared: what was delivered waits for no claim": shared(
        "settle/settling", "        await self._claim_ahead(spool_id, settled)\n", ""
    ),
    "shared: a lease ends by the server's own clock": shared(
        "duties", "            if self._lease.left_s is None:\n", "            if False:\n"
    ),
    "shared: a consumer ends where its connection has": shared(
        "stores/rabbitmq/consuming",
        "            try:\n                self._channel.close()\n",
        "            self._channel.close()\n            try:\n",
    ),
    "shared: what a server that is gone writes late is not counted": shared(
        "browse/recounting", "base=base, over=over)", "base=base)"
    ),
    "shared: the bounces of a round come together": shared(
        "hand/rounds", "        if share.area is not Area.BOUNCES or message.recipient_count == 1:\n", "        if True:\n"
    ),
    "shared: who has the oldest bounce has the round": shared(
        "hand/loading",
        "        if is_bounce and not held.here and not await self._bounces.leads(held.name):\n",
        "        if False:\n",
    ),
    "shared: a bounce that was due is, whatever the clock of its heir says": shared(
        "hand/rounds", "(other.share.was_due or other.share.due_at <= now)", "other.share.due_at <= now"
    ),
    "shared: a bounce stays with its maker": shared("settle/plan", "    if stays_with_maker(share):\n", "    if False:\n"),
    "shared: what is given back for long leaves the hand": shared(
        "hand/giving_back", "        if not_before - self._now() <= LONG_S:\n", "        if True:\n"
    ),
    "shared: what is given back for long has a due row": shared(
        "hand/giving_back", "            await self._rows.write([due_row(due, now)])\n", "            pass\n"
    ),
    "shared: a clean stop acks behind another trigger": shared(
        "hand/leaving",
        "        await broker.publish(queue_of(held.name.place.queue_name), write_trigger(trigger))\n",
        "        broker.publish(queue_of(held.name.place.queue_name), write_trigger(trigger)).addErrback(lambda _: None)\n",
    ),
    "shared: what a clean stop leaves is claimed": shared(
        "hand/leaving",
        "numbers=None if some is None else tuple(some), is_from_row=True)",
        "numbers=None if some is None else tuple(some))",
    ),
}
