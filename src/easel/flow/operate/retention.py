"""Give up old logs, events and outputs: once, or every day by a rule. What would go is told first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput, NotFound
from easel.flow.jobs import replay
from easel.flow.jobs.people import Owners
from easel.records.identity import Caller
from easel.records.retention import GivenUp, Leaving, Retention, RetentionRule
from easel.store import retention
from easel.store.engine import Store, Tx

LEAST_AGE = timedelta(days=1)
"""What is younger may be needed by loops that read the history."""
AGAIN = timedelta(days=1)


def give_up(tx: Tx, caller: Caller, rule: Retention, *, really: bool) -> GivenUp:
    """Tell what is old, and with `really` remove it. Bytes of outputs go with the next `easel gc`."""
    if rule.older_than < LEAST_AGE:
        raise InvalidInput("give up what is at least one day old: --older-than 1")
    before, project = tx.now - rule.older_than, caller.project_id
    match rule.what:
        case Leaving.LOGS:
            count, size, examples = retention.old_logs(tx, project, before, rule.tag)
            found = GivenUp(count, size, tuple(examples))
            if really and count:
                retention.drop_logs(tx, project, before, rule.tag)
        case Leaving.EVENTS:
            count, examples = retention.old_events(tx, project, before, rule.tag)
            found = GivenUp(count, 0, tuple(examples))
            if really and count:
                retention.drop_events(tx, project, before, rule.tag)
        case Leaving.OUTPUTS:
            found = _outputs(tx, caller, retention.old_outputs(tx, project, before, rule.tag), really=really)
    if really and found.count:
        body = {"what": rule.what.value, "count": found.count, "tag": rule.tag, "before": before.isoformat()}
        tx.emit("retention.applied", rule.what.value, project_id=project, actor=caller.user.id, body=body)
    return found


def _outputs(tx: Tx, caller: Caller, found: Sequence[tuple[str, int]], *, really: bool) -> GivenUp:
    """What can be made again by running its job again goes; the rest stays."""
    gone: list[tuple[str, int]] = []
    for name, size in found:
        try:
            if really:
                replay.drop(tx, caller, name)
            else:
                replay.plan(tx, caller, name)
        except (Conflict, NotFound, Denied):
            continue
        gone.append((name, size))
    examples = tuple(name for name, _ in gone[:20])
    return GivenUp(len(gone), sum(size for _, size in gone), examples, len(found) - len(gone))


def keep_rule(tx: Tx, caller: Caller, rule: Retention) -> RetentionRule:
    """Apply a rule every day from now on."""
    if rule.older_than < LEAST_AGE:
        raise InvalidInput("give up what is at least one day old: --older-than 1")
    made = retention.add_rule(tx, caller.project_id, caller.user.id, rule)
    body = {"what": rule.what.value, "days": rule.older_than / timedelta(days=1), "tag": rule.tag}
    tx.emit("retention.set", made.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return made


def rules_of(tx: Tx, caller: Caller) -> list[RetentionRule]:
    return retention.rules(tx, caller.project_id)


def remove_rule(tx: Tx, caller: Caller, rule_id: str) -> None:
    if not retention.remove_rule(tx, caller.project_id, rule_id):
        raise NotFound(f"there is no rule {rule_id!r}: `easel gc --rules` lists them")
    tx.emit("retention.removed", rule_id, project_id=caller.project_id, actor=caller.user.id, body={})


def apply_rules(store: Store) -> int:
    """Apply each rule that was not applied for a day, in the name of whoever set it; returns how many.

    A rule of somebody who is no admin of the project any more is not applied.
    """
    with store.read() as tx:
        due = [r for r in retention.rules(tx) if r.applied_at is None or tx.now - r.applied_at >= AGAIN]
    for each in due:
        with store.write() as tx:
            retention.applied(tx, each.id)
            try:
                caller = Owners(tx).caller(each.project_id, each.created_by)
            except (NotFound, Denied):
                continue
            if caller.role is Role.ADMIN:
                give_up(tx, caller, each.rule, really=True)
    return len(due)
