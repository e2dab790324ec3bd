"""Rules of acts: of the code that runs them, of rules for mail to come, and of entries that come back."""

from __future__ import annotations

from tests.durability.mutation.rule import Rule


def _acts(name: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/queue/acts/{name}.py", old, new)


def _queue(name: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/queue/{name}.py", old, new)


ACTS_RULES: dict[str, Rule] = {
    "acts: an act is durable before its first slice": _acts(
        "acts", "            await self._append(begin_event(act))\n", "            pass\n"
    ),
    "acts: no two servers give one number": _acts("acts", "        if self._numbers is None:\n", "        if True:\n"),
    "acts: an act that could not be written is none": _acts("acts", "            del self._acts[act.number]\n", ""),
    "acts: an act that ended is not in the runs any more": _acts(
        "acts",
        "        if state in _ENDS and self._runs.get(run.act.number) is run:\n",
        "        if False:\n",
    ),
    "acts: an act rests behind each page": _acts("run", "            await self._rest(worked_s)\n", ""),
    "acts: the counts of a slice are written": _acts(
        "run", "            if page.messages:\n                await record(self)\n", ""
    ),
    "acts: a start goes on with what a stop has left": _acts(
        "acts", "            if act.state in UNFINISHED:\n", "            if False:\n"
    ),
    "acts: an undoing that was cut off goes on as one": _acts(
        "acts", "is_undo=act.state is ActState.UNDOING", "is_undo=False"
    ),
    "acts: behind a failed write nothing is written": _acts(
        "acts", "        if self._trouble:\n            raise OSError", "        if False:\n            raise OSError"
    ),
    "acts: an order that could not be written leaves its act as it was": _acts(
        "acts", "            self._acts[before.number] = before\n            self._runs.pop(before.number, None)\n", ""
    ),
    "acts: a stop writes the counts of rules": _acts("acts", "        await self._rules.stop()\n", ""),
    "acts: a stop waits for the slice under way": _acts(
        "acts",
        "        await self._lock.acquire()\n        self._lock.release()\n        await self._rules.stop()\n",
        "        await self._rules.stop()\n",
    ),
    "acts: a stop ends the act that runs behind its slice": _acts(
        "acts", "        for run in self._runs.values():\n            run.interrupt()\n", ""
    ),
    "acts: an act that a stop has cut off is unfinished": _acts(
        "acts", "            if self._is_stopped:\n                return", "            if False:\n                return"
    ),
    "acts: an act waits for entries that are out": _acts("run", "        self._acting.expect(page.out, self)\n", ""),
    "acts: an act looks again for what it waits for": _acts(
        "acts", "            self._look_later(run)\n        except", "        except"
    ),
    "acts: what moved while it was looked for is looked for once more": _acts("run", "LOOKS = 2", "LOOKS = 1"),
    "acts: what was looked for is not waited for any more": _acts(
        "run", "        self._acting.awaited.leave([one for one in queue_ids if one not in out], self)\n", ""
    ),
    "acts: an act that is undone looks for nothing any more": _acts(
        "acts",
        "is not ActState.WAITING or self._is_stopped or self._runs.get(run.act.number) is not run",
        "is not ActState.WAITING or self._is_stopped",
    ),
    "acts: a pass begins without gaps": _acts(
        "run", "before, self.gaps = self.act.entries, Gaps()", "before = self.act.entries"
    ),
    "acts: what an act has it passes over": _acts("run", "            and not has_acted(act, entry)\n", ""),
    "acts: what came later is not concerned": _acts("run", "            and message.received_at <= begun_at\n", ""),
    "acts: an undoing waits for nothing any more": _acts(
        "acts",
        "        if before is not None:\n            self._acting.awaited.forget(before)\n",
        "        if False:\n            self._acting.awaited.forget(before)\n",
    ),
    "acts: an undoing goes on until nothing is left": _acts(
        "run", "        while before != self.act.restored and not self._is_stopped:\n", "        if True:\n"
    ),
    "acts: entries beyond the limit are given back": _acts(
        "run", "                    self._acting.give_back(QueueId(message.spool_id, entry.number), entry.due_at)\n", ""
    ),
    "acts: what is deleted is kept as long as there is room": _acts("run", "room_bytes - kept_bytes", "room_bytes"),
    "acts: an entry remembers where it stood before several acts": _acts(
        "marking", "    facts[WAS] = _join([was, *_split(facts.get(WAS))])\n", "    facts[WAS] = was\n"
    ),
    "acts: an entry is marked with its act": _acts(
        "marking",
        '    facts[ACT] = _join([act_name(number).encode("ascii"), *_split(facts.get(ACT))])\n',
        "    facts[ACT] = _join(_split(facts.get(ACT)))\n",
    ),
    "acts: an undoing restores what the act itself has": _acts(
        "decide", "    return entry.area in KEEPS and act_of(entry) == act.number\n", "    return entry.area in KEEPS\n"
    ),
    "acts: what comes back to an undone hold is not held again": _acts(
        "marking", "        if number is None or not is_undone(number):\n", "        if True:\n"
    ),
    "acts: what is held too long is released, not removed": _acts(
        "keeping", "restored(message, entry, now) if area is Area.HELD else ", ""
    ),
    "acts: holds end by their time": _acts(
        "keeping", "        for area in (Area.HELD, Area.DELETED):\n", "        for area in (Area.DELETED,):\n"
    ),
    "acts: what is kept ends by its time": _acts(
        "keeping", "        for area in (Area.HELD, Area.DELETED):\n", "        for area in (Area.HELD,):\n"
    ),
    "redirect: what goes there already is passed over": _acts(
        "decide",
        "        return _has_redirected(act, entry) or is_sent_to(entry.recipient, entry.words, act.order.to)\n",
        "        return _has_redirected(act, entry)\n",
    ),
    "redirect: an undoing takes its own redirection alone": _acts(
        "decide", "[one for one in redirects_of(entry.words) if one.act != act.number]", "[]"
    ),
    "redirect: a bounce keeps its redirection": _acts(
        "decide", "        return entry.area is not Area.BOUNCES and ", "        return "
    ),
    "redirect: the file tells of a recipient apart from a relay": _acts(
        "record", "_MEMBERS[is_address(order.to)]: order.to", '"relay": order.to'
    ),
    "redirect: an act has one of both": _acts(
        "record", "    (name,) = _MEMBERS.values() & value.keys()\n", "    name = max(_MEMBERS.values() & value.keys())\n"
    ),
    "redirect: the newest decides": _queue("redirect", "key=lambda one: one.act, reverse=True)", "key=lambda one: one.act)"),
    "redirect: a recipient that is newer than a relay goes its own way": _queue(
        "redirect",
        "    return None if not redirects or is_address(redirects[0].target) else redirects[0].target\n",
        "    return next((one.target for one in redirects if not is_address(one.target)), None)\n",
    ),
    "redirect: a comma of an address parts nothing": _queue(
        "redirect", "    return escape(address, _SEPARATORS)\n", "    return address\n"
    ),
    "redirect: the words have room for the longest recipients": _queue(
        "redirect", "        if _length_of(facts[TO]) <= LONGEST_TO:\n", "        if True:\n"
    ),
    "redirect: what is no address tells of none": _queue(
        "redirect", "number is not None and parse(target) == target", "number is not None"
    ),
    "rules: a rule is in force behind its write": _acts(
        "acts",
        "            filter_of(act)\n        self._acts[act.number] = act\n",
        "            filter_of(act)\n        else:\n            self._rules.add(rule)\n"
        "        self._acts[act.number] = act\n",
    ),
    "rules: a start puts rules in force": _acts(
        "acts", "            if act.is_in_force:\n                try:\n", "            if False:\n                try:\n"
    ),
    "rules: an undoing is written before the rule ends": _acts(
        "acts",
        "        await self._change_or_refuse(run, ActState.UNDOING, act)\n        rule = self._rules.end(number)\n",
        "        rule = self._rules.end(number)\n        await self._change_or_refuse(run, ActState.UNDOING, act)\n",
    ),
    "rules: an undoing waits for commits under way": _acts(
        "acts",
        "            await rule.quiet()\n            run.take_counts(rule.act)\n",
        "            run.take_counts(rule.act)\n",
    ),
    "rules: a rule that is undone holds nothing more": _acts(
        "rules", "        rule = self._rules.pop(number, None)\n", "        rule = self._rules.get(number)\n"
    ),
    "rules: a rule ends by its time": _acts(
        "rules", "                if rule.is_over(now):\n", "                if False:\n"
    ),
    "rules: a rule whose time is over holds nothing": _acts(
        "rule", "        if self.is_over(message.received_at) or not ", "        if not "
    ),
    "rules: a held entry is marked": _acts(
        "rule", "        words = marked(entry, self.act.number)\n", "        words = None\n"
    ),
    "rules: the oldest rule has an entry": _acts(
        "rules", "sorted(self._rules.items())])", "sorted(self._rules.items(), reverse=True)])"
    ),
    "rules: the file that is written anew keeps them": _acts(
        "act_file", "UNFINISHED | {ActState.INTERRUPTED, ActState.IN_FORCE}", "UNFINISHED | {ActState.INTERRUPTED}"
    ),
    "rules: a rule begins in force": _acts(
        "act", "ActState.IN_FORCE if order.kind is ActKind.HOLD_INCOMING else ActState.RUNNING", "ActState.RUNNING"
    ),
    "rules: their number is bounded": _acts("acts", " >= MOST_RULES:\n", " >= 1000:\n"),
    "rules: a commit that failed counts for none": _queue(
        "arriving",
        "            rule.end(self.message, entries if is_durable else ())\n",
        "            rule.end(self.message, entries)\n",
    ),
    "rules: an undoing knows of a commit from its beginning": _queue(
        "arriving", "            rule.begin()\n", "            pass\n"
    ),
    "rules: an entry that no rule has begins as new mail": _queue(
        "arriving", "            facts = entry.area, entry.due_at,", "            facts = Area.DEFERRED, entry.due_at,"
    ),
    "acts: the act's settlement takes the place of the outcome's": _queue(
        "coming_back", "        return settlement if acted is None else acted\n", "        return settlement\n"
    ),
    "acts: what is given back untried is acted on": _queue(
        "coming_back",
        "            if acted is None:\n                left.append(entry)\n            else:\n",
        "            if True:\n                left.append(entry)\n            else:\n",
    ),
    "acts: an act is told of what was delivered": _queue(
        "coming_back", "                act.came_back(message, entry, None)\n", "                pass\n"
    ),
    "acts: failures of an act come with one report": _queue(
        "acting", "            self._bounces.bounced(spool_id, count)\n", "            pass\n"
    ),
    "acts: what is restored wakes those who wait": _queue(
        "acting", "            self._listeners.wake(Area.DEFERRED, min(dues), self.now())\n", "            pass\n"
    ),
}
