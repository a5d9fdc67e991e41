"""From a job in the database to the order that an executor gets: everything resolved."""

from __future__ import annotations

from dataclasses import dataclass, field

from easel.errors import Misconfigured
from easel.flow.jobs.files import files_of, without_common_folder
from easel.flow.jobs.people import Owners
from easel.run.order import LogLimits, Order
from easel.run.vault import Vault
from easel.store.engine import AnyRow, Tx
from easel.store.jobs import SPEC


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """What an admin allows every job."""

    disk_mb: int = 20 * 1024
    grace_s: float = 5.0
    log: LogLimits = field(default_factory=LogLimits)


def order_of(tx: Tx, owners: Owners, row: AnyRow, vault: Vault, limits: OrderLimits) -> Order:
    """`row` is a launching job. Fails where what it was promised is gone."""
    spec = SPEC.validate_python(row.spec)
    caller = owners.caller(row.project_id, row.user_id)
    environment = spec.environment
    secrets = {name: vault.read(row.project_id, secret) for name, secret in environment.secrets.items()}
    missing = next((environment.secrets[name] for name, value in secrets.items() if value is None), None)
    if missing is not None:
        raise Misconfigured(f"there is no secret {missing!r} in this project: an admin can add it")
    return Order(
        job_id=row.id,
        attempt=row.attempt,
        project_id=row.project_id,
        run=spec.run,
        resources=spec.resources,
        code=without_common_folder(files_of(tx, caller, row.code_set)),
        input=files_of(tx, caller, row.input_set),
        output_folder=spec.output_folder,
        python=environment.python,
        image=environment.image,
        network=environment.network,
        variables=dict(environment.variables),
        secrets={name: value for name, value in secrets.items() if value is not None},
        time_limit_s=spec.time_limit_s,
        disk_mb=limits.disk_mb,
        grace_s=limits.grace_s,
        log=limits.log,
        wants=dict(spec.wants),
        workers=spec.workers,
    )
