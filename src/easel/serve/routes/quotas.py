"""What a project and the people in it may hold and use."""

from __future__ import annotations

from easel.flow import quotas
from easel.records.identity import Caller
from easel.records.quota import Quota
from easel.serve.access import Member, ProjectAdmin, State
from easel.serve.router import Router
from easel.serve.state import AppState
from easel.wire import operate as wire

router = Router(prefix="/api/v1/projects/{project}/quotas", tags=["operations"])


@router.get("", response_model=wire.Quotas)
def list_quotas(state: State, caller: Member) -> wire.Quotas:
    """The limits, and what is used of them."""
    return _shown(state, caller)


@router.put("", response_model=wire.Quotas)
def set_quota(state: State, caller: ProjectAdmin, body: wire.SetQuota) -> wire.Quotas:
    """Set the quota of a member, or of the project (platform admins). What is left out has no limit."""
    with state.store.write() as tx:
        quotas.set_quota(tx, caller, body.user, Quota(body.bytes, body.gpu_hours, body.jobs))
    return _shown(state, caller)


def _shown(state: AppState, caller: Caller) -> wire.Quotas:
    with state.store.read() as tx:
        found = quotas.standings(tx, caller)
    return wire.Quotas(
        items=[
            wire.Quota(
                user=each.user,
                bytes=each.quota.bytes,
                gpu_hours=each.quota.gpu_hours,
                jobs=each.quota.jobs,
                used_bytes=each.use.bytes,
                used_gpu_hours=each.use.gpu_hours,
                used_jobs=each.use.jobs,
            )
            for each in found
        ]
    )
