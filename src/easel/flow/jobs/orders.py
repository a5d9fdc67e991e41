"""From a job in the database to the order that an executor gets: everything resolved."""

from __future__ import annotations

from dataclasses import dataclass, field

from easel.declare.job import JobSpec, Trial
from easel.errors import Denied, Misconfigured
from easel.flow.jobs.files import checkpoint_files, code_files, files_of
from easel.flow.jobs.people import Owners
from easel.flow.jobs.tracking_tokens import JobTracking
from easel.records.identity import Caller
from easel.run.order import LogLimits, Order
from easel.run.secret_store import SecretStore
from easel.store import environments
from easel.store.engine import Tx
from easel.store.job_specs import SPEC
from easel.store.stored_job import StoredJob


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """What an admin allows every job."""

    disk_mb: int = 20 * 1024
    grace_s: float = 5.0
    log: LogLimits = field(default_factory=LogLimits)
    processes: int = 1024
    network_projects: tuple[str, ...] = ()
    """Projects (`*`: all) whose jobs may use the network."""
    host_network_projects: tuple[str, ...] = ()
    """Projects whose distributed jobs share their machines' own network, to find one another."""
    index_url: str | None = None
    """The package index for environments; None is the installer's own."""
    wheels: str | None = None
    """A folder of wheels on each device, from which alone environments are built."""
    tracking: JobTracking | None = None
    """How MLflow inside a job finds its run."""

    session_idle_s: float = 7200.0
    session_idle_gpu_s: float = 1800.0
    """How long an interactive session may do nothing, without and with GPUs; 0: for ever."""

    def idle_s(self, spec: JobSpec) -> float | None:
        """The idle limit of a session; None for other jobs, and where there is none."""
        limit = self.session_idle_gpu_s if spec.resources.gpus else self.session_idle_s
        return limit if spec.port is not None and limit > 0 else None

    def check_network(self, caller: Caller) -> None:
        """Refuses a job that wants the network where no admin has given its project leave."""
        name = caller.project.name if caller.project else ""
        if not {name, "*"} & {*self.network_projects, *self.host_network_projects}:
            raise Denied(
                f"project {name} may not use the network: leave out `network`, or ask a platform admin to add the "
                "project to the setting `network_projects`"
            )

    def shares_network(self, caller: Caller) -> bool:
        return caller.project is not None and caller.project.name in self.host_network_projects


def order_of(tx: Tx, owners: Owners, row: StoredJob, secret_store: SecretStore, limits: OrderLimits) -> Order:
    """`row` is a launching job. Fails where what it was promised is gone."""
    spec = SPEC.validate_python(row.spec)
    caller = owners.caller(row.project_id, row.user_id)
    environment = spec.environment
    if environment.network:
        limits.check_network(caller)
    secrets = {
        name: secret_store.read(row.project_id, secret) for name, secret in environment.secrets.items()
    }
    missing = next((environment.secrets[name] for name, value in secrets.items() if value is None), None)
    if missing is not None:
        raise Misconfigured(f"there is no secret {missing!r} in this project: an admin can add it")
    address, token = _tracking(caller, row, spec, limits)
    code = code_files(tx, caller, row.code_set)
    asked = None
    if environment.requirements is not None:
        path = f"/{environment.requirements.removeprefix('./')}"
        asked = next((file.digest for file in code if file.path == path), "")
    return Order(
        job_id=row.id,
        attempt=row.attempt,
        project_id=row.project_id,
        run=spec.run,
        resources=spec.resources,
        code=code,
        executable=spec.origin.executable if spec.origin else (),
        input=files_of(tx, caller, row.input_set),
        output_folder=spec.output_folder,
        python=environment.python,
        image=environment.image,
        requirements=environment.requirements,
        requirements_digest=asked,
        locks=environments.locks(tx, row.project_id, asked) if asked else {},
        index_url=limits.index_url,
        wheels=limits.wheels,
        network=environment.network,
        host_network=environment.network and spec.workers > 1 and limits.shares_network(caller),
        tracking=address,
        variables=environment.variables,
        secrets={**token, **{name: value for name, value in secrets.items() if value is not None}},
        time_limit_s=spec.time_limit_s,
        disk_mb=limits.disk_mb,
        processes=max(limits.processes, int(128 * spec.resources.vcpu)),
        grace_s=limits.grace_s,
        log=limits.log,
        wants=dict(spec.wants),
        workers=spec.workers,
        resume=checkpoint_files(tx, caller, spec.resume),
        port=spec.port,
        preemptible=spec.preemptible,
        slice=spec.slice,
        idle_s=limits.idle_s(spec),
    )


def _tracking(
    caller: Caller, row: StoredJob, spec: JobSpec, limits: OrderLimits
) -> tuple[str | None, dict[str, str]]:
    """The address and the token with which MLflow inside the job logs to the job's own run.

    Nothing for a job that names another server itself, and for trials of apps, which are our own code.
    """
    named = {*spec.environment.variables, *spec.environment.secrets}
    if limits.tracking is None or "MLFLOW_TRACKING_URI" in named or isinstance(spec.run, Trial):
        return None, {}
    assert caller.project is not None
    return limits.tracking.of_project(caller.project.name), {
        "MLFLOW_TRACKING_TOKEN": limits.tracking.token(row)
    }
