"""Models of apps as registered models: an app is one, every model that was found for it a version.

Nothing is kept for it. The alias `champion` is the model that answers now: always the one that `easel infer` asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from easel.errors import NotFound
from easel.flow.apps.best import serving
from easel.flow.lake import browse
from easel.flow.mlflow.artifacts import SCHEME
from easel.flow.mlflow.errors import absent
from easel.lake.paths import escape
from easel.records.app import App
from easel.records.identity import Caller
from easel.records.lake import Folder
from easel.records.run import ModelVersion, RegisteredModel
from easel.store import app_trials, apps
from easel.store.engine import Tx

CHAMPION = "champion"
OF_APP = "easel.app"


def find(tx: Tx, caller: Caller, name: str) -> RegisteredModel | None:
    """The app's models; None where there is no such app, or it has none yet."""
    try:
        app = apps.find(tx, caller.project_id, name)
    except NotFound:
        return None
    return _model(tx, app, _versions(tx, app))


def every(tx: Tx, caller: Caller) -> list[RegisteredModel]:
    found = (_model(tx, app, _versions(tx, app)) for app in apps.list_apps(tx, caller.project_id))
    return [model for model in found if model is not None]


def versions(tx: Tx, caller: Caller, name: str | None = None) -> list[ModelVersion]:
    """Returns the versions of one app or of all, oldest first."""
    return [
        version
        for app in apps.list_apps(tx, caller.project_id)
        if name is None or app.name == name
        for version in _versions(tx, app)
    ]


def folder_uri(tx: Tx, caller: Caller, version: ModelVersion) -> str:
    """Where the files of a version are: each model set has a folder of its own name, and in it the model."""
    name, number = version.source.removeprefix(f"{SCHEME}filesets/").split("/")
    page = browse.list_files(tx, caller, f"{escape(f'/{name}/')}@{name}:{number}", recursive=False, limit=10)
    folder = next((item.path for item in page.items if isinstance(item, Folder)), None)
    if folder is None:
        raise absent(f"Model Version (name={version.name}, version={version.version}) has no files")
    return f"{version.source}/{folder.strip('/').rpartition('/')[2]}/model"


def _versions(tx: Tx, app: App) -> list[ModelVersion]:
    ended = [(one, one.model_set) for one in app_trials.ended(tx, app.id) if one.model_set is not None]
    return [
        ModelVersion(
            project_id=app.project_id,
            name=app.name,
            version=number,
            set_version=int(model_set.partition(":")[2]),
            source=f"{SCHEME}filesets/{model_set.replace(':', '/')}",
            run_id=one.job_id,
            run_link=None,
            model_id=None,
            stage="None",
            description=one.name,
            tags={} if one.quality is None else {"quality": f"{one.quality:.6g}"},
            creator=app.user_id,
            created_at=one.ended_at,
            updated_at=one.ended_at,
        )
        for number, (one, model_set) in enumerate(ended, start=1)
    ]


def _model(tx: Tx, app: App, found: Sequence[ModelVersion]) -> RegisteredModel | None:
    if not found:
        return None
    answers = serving(tx, app)
    numbers = {version.run_id: version.version for version in found}
    champion = numbers.get(answers.job_id) if answers is not None else None
    return RegisteredModel(
        project_id=app.project_id,
        name=app.name,
        file_set=found[-1].source,
        description=app.program,
        tags={OF_APP: "true"},
        aliases={} if champion is None else {CHAMPION: champion},
        latest=found[-1].version,
        creator=app.user_id,
        created_at=app.created_at,
        updated_at=found[-1].updated_at,
    )
