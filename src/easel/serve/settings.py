"""Every setting, from `EASEL_*` variables and `easel.toml`; docs/reference/settings.md is made from this."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from easel.declare.sign_on import LdapSettings, OidcSettings
from easel.errors import Misconfigured

UNDERSTOOD = "I understand"


class Settings(BaseSettings):
    """A variable wins over the file: `easel.toml` in EASEL_HOME, or what EASEL_CONFIG names."""

    model_config = SettingsConfigDict(env_prefix="EASEL_", extra="forbid", frozen=True)

    home: Annotated[Path, Field(description="Folder of the database, blobs, backups and keys")] = Path(
        "~/.easel"
    )
    host: Annotated[str, Field(description="Address to listen on; keep it local behind a reverse proxy")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 takes a free one")] = 8741
    database_url: Annotated[
        SecretStr | None,
        Field(description="postgresql://user:password@host/name; empty means SQLite under `home`"),
    ] = None
    https: Annotated[
        bool, Field(description="Served over HTTPS (by a reverse proxy): session cookies are marked Secure")
    ] = False
    trusted_proxies: Annotated[
        str,
        Field(description="Addresses of reverse proxies whose X-Forwarded-For is believed; empty means none"),
    ] = ""
    max_body_bytes: Annotated[
        int, Field(ge=1024, description="Largest JSON request; files do not pass through JSON")
    ] = 2 * 1024 * 1024
    failed_logins_per_minute: Annotated[
        int, Field(ge=1, description="Wrong tokens accepted from one address before it must wait")
    ] = 20
    requests_at_once: Annotated[
        int, Field(ge=1, description="Requests that run at a time; more wait, and users take turns")
    ] = 16
    requests_per_user: Annotated[
        int, Field(ge=1, description="Requests of one user that may wait; more are refused (429)")
    ] = 500
    streams_per_user: Annotated[
        int, Field(ge=1, description="Live streams that one user may have open; more are refused (429)")
    ] = 64
    least_free_mb: Annotated[
        int, Field(ge=0, description="Below so much room on the disk /readyz says no, and caches give way")
    ] = 128
    cache_mb: Annotated[int, Field(ge=0, description="Most that the cache of files for jobs may hold")] = (
        51_200
    )
    cache_days: Annotated[
        float, Field(gt=0, description="Files that no job used for so long leave the cache")
    ] = 30.0
    public_metrics: Annotated[
        bool, Field(description="Whether /metrics may be read without a platform admin's token")
    ] = False
    executor: Annotated[
        str,
        Field(
            pattern="^(local|alone|remote|ray|slurm)$",
            description="What runs jobs: `local` is this machine and workers that join it, `alone` this machine "
            "only, `remote` only workers that join, `ray` and `slurm` workers that a cluster starts",
        ),
    ] = "local"
    worker_lost_after_s: Annotated[
        float,
        Field(
            ge=5, description="Silence after which a worker elsewhere counts as lost, and its jobs with it"
        ),
    ] = 120.0
    public_url: Annotated[
        str,
        Field(description="Address at which machines of a cluster reach this server; empty means its own"),
    ] = ""
    keep_warm_s: Annotated[
        float, Field(ge=0, description="How long a worker on a cluster waits for more work before it ends")
    ] = 60.0
    max_placed_workers: Annotated[
        int, Field(ge=1, description="Most workers on a cluster at once, waiting ones counted")
    ] = 64
    ray_address: Annotated[
        str,
        Field(description="host:port of Ray's head; empty starts a cluster on this machine for a try-out"),
    ] = ""
    ray_token_file: Annotated[
        Path | None, Field(description="File with the token of the Ray cluster; empty means where Ray looks")
    ] = None
    slurm_partition: Annotated[str, Field(description="Partition for workers; empty means the default")] = ""
    slurm_account: Annotated[str, Field(description="Account that pays for workers")] = ""
    slurm_qos: Annotated[str, Field(description="Quality of service of workers")] = ""
    slurm_gres: Annotated[str, Field(description="What GPUs are called: `gpu`, or `gpu:a100`")] = "gpu"
    slurm_minutes: Annotated[
        int,
        Field(ge=0, description="Time limit of a worker; a job with a longer one gets more; 0 is Slurm's"),
    ] = 0
    slurm_folder: Annotated[
        Path | None,
        Field(description="Folder that nodes see too, for scripts and logs; empty means in `home`"),
    ] = None
    slurm_python: Annotated[
        str, Field(description="Interpreter on the nodes that has easel; empty means this one")
    ] = ""
    slurm_options: Annotated[str, Field(description="Further options for sbatch, as on a command line")] = ""
    max_active_jobs: Annotated[
        int,
        Field(ge=1, description="Jobs of one user that launch or run at once, unless an admin set another"),
    ] = 8
    app_done_below: Annotated[
        float,
        Field(ge=0, description="An app that may gain less than this in the next hour stops by itself"),
    ] = 0.0005
    trial_patience: Annotated[
        float, Field(ge=1, description="A trial is ended after so many times the seconds predicted for it")
    ] = 4.0
    trial_least_limit_s: Annotated[
        float, Field(ge=1, description="No trial is ended before this, however short its prediction")
    ] = 60.0
    share_half_life_days: Annotated[
        float,
        Field(gt=0, description="After so many days, use of the pool counts half in the fair share"),
    ] = 7.0
    worker_vcpu: Annotated[
        float | None, Field(ge=0.5, description="vCPU of this machine that jobs may use; empty means all")
    ] = None
    worker_memory_mb: Annotated[
        int | None, Field(ge=64, description="Memory that jobs may use; empty means nine tenths")
    ] = None
    sandbox: Annotated[
        bool,
        Field(description="Run commands of users in bubblewrap; without it (see `unsandboxed`) none run"),
    ] = True
    package_index: Annotated[
        str | None,
        Field(
            description="Address of the package index for the environments of jobs; empty: the installer's own"
        ),
    ] = None
    package_wheels: Annotated[
        Path | None,
        Field(
            description="Folder of wheels on each device from which alone environments are built, without network"
        ),
    ] = None
    unsandboxed: Annotated[
        str,
        Field(
            pattern=f"^({UNDERSTOOD})?$",
            description=f"`{UNDERSTOOD}` lets commands of users run without a sandbox where there is none: they can "
            "read and change whatever this server can",
        ),
    ] = ""
    interpreters: Annotated[
        tuple[Path, ...],
        Field(description="Python interpreters and environments of this machine that jobs may name"),
    ] = ()
    network_projects: Annotated[
        tuple[str, ...],
        Field(
            description="Projects whose jobs may reach public addresses with `network: true`; `*` means all"
        ),
    ] = ()
    host_network_projects: Annotated[
        tuple[str, ...],
        Field(
            description="Projects whose distributed jobs share their machines' own network, loopback included"
        ),
    ] = ()
    job_processes: Annotated[
        int, Field(ge=16, description="Processes and threads that a job may have at once")
    ] = 1024
    warm_trials: Annotated[
        bool,
        Field(description="Import libraries and load models ahead, so that trials and answers begin at once"),
    ] = True
    model_processes: Annotated[
        int, Field(ge=1, le=64, description="Processes that hold models and answer for them")
    ] = 1
    model_memory_mb: Annotated[
        int,
        Field(
            ge=256, description="What each of them may hold in memory; the model asked longest ago gives way"
        ),
    ] = 4096
    answer_limit_s: Annotated[
        float, Field(gt=0, description="A model that has not answered a request by then is ended")
    ] = 60.0
    job_disk_mb: Annotated[int, Field(ge=1, description="What a job may write to disk, in megabytes")] = (
        20_480
    )
    job_grace_s: Annotated[float, Field(ge=0, description="Seconds between SIGTERM and SIGKILL")] = 5.0
    session_idle_minutes: Annotated[
        float, Field(ge=0, description="Minutes that an interactive session may do nothing; 0: for ever")
    ] = 120.0
    session_idle_gpu_minutes: Annotated[
        float, Field(ge=0, description="The same for one that holds a GPU; 0: for ever")
    ] = 30.0
    job_log_mb: Annotated[
        int,
        Field(ge=1, le=1024, description="How much of a job's log is kept: two thirds first, one third last"),
    ] = 12
    job_lost_after_s: Annotated[
        float, Field(ge=5, description="Silence after which a job counts as lost and is tried again or fails")
    ] = 60.0
    controller_lease_s: Annotated[
        float, Field(ge=1, description="How long a controller that died keeps those that stand by waiting")
    ] = 6.0
    blobs_url: Annotated[
        str,
        Field(description="s3://bucket/prefix for an S3-compatible store; empty means a folder in `home`"),
    ] = ""
    s3_endpoint: Annotated[str, Field(description="Address of an S3-compatible service; empty means AWS")] = (
        ""
    )
    s3_region: Annotated[str, Field(description="Region of the bucket")] = ""
    s3_access_key: Annotated[
        str, Field(description="Empty means that credentials come from where AWS tools look for them")
    ] = ""
    s3_secret_key: Annotated[SecretStr | None, Field(description="Belongs to s3_access_key")] = None
    smtp_host: Annotated[str, Field(description="Mail server for messages to people; empty: no mail")] = ""
    smtp_port: Annotated[int, Field(ge=1, le=65535, description="Port of the mail server")] = 587
    smtp_security: Annotated[
        str,
        Field(
            pattern="^(starttls|tls|none)$",
            description="How the mail server is spoken to; `none` is unencrypted",
        ),
    ] = "starttls"
    smtp_user: Annotated[str, Field(description="Name for the mail server; empty: no log-in")] = ""
    smtp_password: Annotated[SecretStr | None, Field(description="Belongs to smtp_user")] = None
    mail_from: Annotated[str, Field(description="Sender of mail: Easel <easel@example.org>")] = ""
    message_networks: Annotated[
        tuple[str, ...],
        Field(
            description="Private networks (10.0.0.0/8) that webhooks may reach; none means public addresses only"
        ),
    ] = ()
    message_keep_days: Annotated[
        float, Field(gt=0, description="Messages that were sent or given up are kept for so many days")
    ] = 90.0
    log_requests: Annotated[
        str,
        Field(
            pattern="^(auto|yes|no)$",
            description="Whether each request is a line of the log; `auto`: unless the log goes to a terminal",
        ),
    ] = "auto"
    stop_delay_s: Annotated[
        float,
        Field(
            ge=0,
            le=600,
            description="Told to stop, /readyz says no for so long first: a proxy then sends requests elsewhere",
        ),
    ] = 0.0
    sign_on: Annotated[
        tuple[OidcSettings, ...],
        Field(
            description="Providers that speak OpenID Connect, as `[[sign_on]]` tables of easel.toml or as JSON"
        ),
    ] = ()
    directories: Annotated[
        tuple[LdapSettings, ...],
        Field(description="LDAP directories, as `[[directories]]` tables of easel.toml or as JSON"),
    ] = ()
    audit_keep_days: Annotated[
        float, Field(ge=0, description="Entries of the audit are kept for so many days; 0 means for ever")
    ] = 400.0
    audit_syslog: Annotated[
        str,
        Field(
            pattern="^((udp|tcp)://.+|unix:///.+)?$",
            description="Where the audit is sent on: udp://host:port, tcp://host:port or unix:///dev/log",
        ),
    ] = ""
    traces: Annotated[
        str,
        Field(
            pattern="^((https?|file)://.+)?$",
            description="Where OpenTelemetry traces of jobs go: http://collector:4318 or file:///a/file; empty: none",
        ),
    ] = ""
    log_level: Annotated[
        str, Field(pattern="^(debug|info|warning|error)$", description="How much to log")
    ] = "info"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = TomlConfigSettingsSource(settings_cls, toml_file=config_file())
        return init_settings, env_settings, file

    @property
    def folder(self) -> Path:
        return self.home.expanduser().resolve()

    @property
    def database(self) -> str:
        if self.database_url and self.database_url.get_secret_value():
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.folder / 'easel.sqlite'}"


def config_file() -> Path:
    named = os.environ.get("EASEL_CONFIG")
    return (
        Path(named) if named else Path(os.environ.get("EASEL_HOME", "~/.easel")).expanduser() / "easel.toml"
    )


def load() -> Settings:
    """The settings, or an error that names the wrong one without showing any value."""
    try:
        return Settings()
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise Misconfigured(f"wrong setting ({told}): see docs/reference/settings.md") from None


def prepare_home(settings: Settings) -> None:
    """Make the folder that only its owner may enter."""
    folder = settings.folder
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Misconfigured(f"cannot make {folder}: {error.strerror}; set EASEL_HOME") from error
    if folder.stat().st_mode & 0o077:
        raise Misconfigured(
            f"{folder} can be entered by others, and holds keys and everybody's data: "
            f"`easel doctor --fix`, or chmod 700 {folder}"
        )
    if not os.access(folder, os.W_OK):
        raise Misconfigured(f"cannot write to {folder}: change its owner or set EASEL_HOME")
