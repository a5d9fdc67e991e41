"""Routes of files: MLflow's artifact store (get, put, delete, list, multipart), and the lists of runs."""

from __future__ import annotations

import mimetypes
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from easel.flow.lake.browse import Readable
from easel.flow.mlflow import artifacts as flow
from easel.flow.mlflow import logged_models, registry
from easel.flow.mlflow import runs as flow_runs
from easel.flow.mlflow.errors import absent, invalid
from easel.lake.digest import Digest
from easel.records.identity import Caller
from easel.serve.access import State
from easel.serve.incoming import arriving
from easel.serve.mlflow import answers
from easel.serve.mlflow.access import Tracker
from easel.serve.mlflow.asked import Asked, AskedFields
from easel.serve.mlflow.routing import PREFIXES, api, new_router
from easel.serve.state import AppState

router = new_router()
Json = dict[str, Any]
STREAMED = re.compile(r"/mlflow/[^/]+/(?:ajax-)?api/2\.0/mlflow-artifacts/(?:artifacts|mpu/part)/")
"""Addresses whose bodies are files: they have no limit but the disk's."""
MAX_PARTS = 10_000
_TEXTS = frozenset(
    (
        "txt",
        "log",
        "err",
        "cfg",
        "conf",
        "cnf",
        "cf",
        "ini",
        "properties",
        "prop",
        "hocon",
        "toml",
        "yaml",
        "yml",
    )
) | frozenset(
    (
        "xml",
        "json",
        "js",
        "py",
        "py3",
        "csv",
        "tsv",
        "md",
        "rst",
        "html",
        "htm",
        "svg",
        "mlmodel",
        "mlproject",
    )
)
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")


@api(router, "artifacts/list", "GET")
def list_run_artifacts(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    run_id, path = ask.run_id(), ask.text("path") or ""
    with state.store.read() as tx:
        place = flow.of_run(tx, caller, run_id, path)
        found = flow.listing(tx, caller, place)
        root = flow.run_uri(*_located(flow_runs.get(tx, caller, run_id)))
    return {"root_uri": root, "files": [answers.file(each) for each in found]}


def _no_direct_url(state: AppState, caller: Caller, ask: AskedFields, what: str) -> Json:
    """There is no store beside the server to which an address could lead: refused as MLflow's own server refuses it."""
    flow.check_path(ask.need_text("path"))
    run_id, model_id = ask.text("run_id"), ask.text("model_id")
    if bool(run_id) == bool(model_id):
        raise invalid("Exactly one of run_id and model_id must be provided.")
    with state.store.read() as tx:
        if run_id:
            flow_runs.get(tx, caller, run_id)
        else:
            logged_models.find(tx, caller, model_id or "")
    raise invalid(
        f"Presigned {what} is not supported for proxied artifact storage (artifact URI scheme: mlflow-artifacts). "
        "This endpoint requires a direct cloud storage artifact URI."
    )


@api(router, "artifacts/presigned-upload-url", "POST")
def refuse_upload_url(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    return _no_direct_url(state, caller, ask, "upload")


@api(router, "artifacts/presigned-download-url", "POST")
def refuse_download_url(state: AppState, caller: Caller, ask: AskedFields) -> Json:
    ask.need_text("run_id")
    return _no_direct_url(state, caller, ask, "download")


def _located(run: flow_runs.WholeRun) -> tuple[Any, str | None]:
    return run.record, run.location


def _list_store(state: State, caller: Tracker, ask: Asked) -> JSONResponse:
    """What lies directly below a path; names count from it."""
    path = ask.text("path") or ""
    with state.store.read() as tx:
        place = flow.locate(tx, caller, path)
        found = flow.listing(tx, caller, place)
    cut = len(place.path.rstrip("/")) + 1 if place.path else 0
    return JSONResponse({"files": [answers.file(each, each.path[cut:]) for each in found]})


def _download(state: State, caller: Tracker, request: Request, artifact_path: str) -> Response:
    with state.store.read() as tx:
        found = flow.open_file(tx, caller, flow.locate(tx, caller, artifact_path))
    return sent(state, found, request.headers.get("range"))


def sent(state: AppState, found: Readable, span: str | None = None) -> Response:
    """The bytes of a file, or the part of them that `Range` names."""
    size = found.place.size
    start, end = 0, size
    if span and (match := re.fullmatch(r"bytes=(\d{1,18})-(\d{0,18})", span)) and int(match[1]) < size:
        start, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    chunks = state.lake.blobs.read(Digest(found.place.object), found.place.offset + start, end - start)
    name = found.entry.path.rpartition("/")[2]
    headers = {
        "Content-Length": str(end - start),
        "Content-Type": media_type(name),
        "Content-Disposition": f"attachment; filename={_token(name)}",
        "Accept-Ranges": "bytes",
    }
    partial = (start, end) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return StreamingResponse(chunks, 206 if partial else 200, headers)


def media_type(name: str) -> str:
    """Returns the media type as MLflow's own server says it: what people read is plain text, whatever its syntax."""
    ending = name.lower().rpartition(".")[2]
    if ending in _TEXTS:
        return "text/plain"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _token(name: str) -> str:
    """A file's name as a header may hold it."""
    if re.fullmatch(r"[A-Za-z0-9._+~-]+", name):
        return name
    return '"' + re.sub(r'[^\x20-\x7e]|["\\]', "_", name) + '"'


async def _upload(state: State, caller: Tracker, request: Request, artifact_path: str) -> JSONResponse:
    await to_thread.run_sync(keep_upload, state, caller, artifact_path, arriving(request))
    return JSONResponse({})


def keep_upload(state: AppState, caller: Caller, path: str, chunks: Iterable[bytes]) -> None:
    """Gather the bytes, then make them a version; a connection that breaks off leaves nothing."""
    with state.store.read() as tx:
        place = flow.locate(tx, caller, path)
    flow.check_writable(caller, place)
    with tempfile.NamedTemporaryFile(dir=_folder(state), prefix="put-") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        flow.write(state.lake, caller, place, Path(file.name))


def _folder(state: AppState) -> Path:
    folder = state.settings.folder / "mlflow-parts"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _delete(state: State, caller: Tracker, artifact_path: str) -> JSONResponse:
    with state.store.write() as tx:
        flow.delete(tx, caller, flow.locate(tx, caller, artifact_path))
    return JSONResponse({})


# Multipart uploads. Parts are kept in the server's own folder until they are joined. --------------------------


def _target(path: str, ask: AskedFields) -> str:
    """Clients name the folder in the address, and the file by its path at home."""
    name = ask.need_text("path").replace("\\", "/").rpartition("/")[2]
    return f"{path.strip('/')}/{name}" if path.strip("/") else name


def _begin_parts(
    state: State, caller: Tracker, ask: Asked, request: Request, artifact_path: str
) -> JSONResponse:
    target, count = _target(artifact_path, ask), ask.whole("num_parts") or 1
    if not 1 <= count <= MAX_PARTS:
        raise invalid(f"Invalid value {count} for parameter 'num_parts' supplied: between 1 and {MAX_PARTS}")
    with state.store.read() as tx:
        flow.check_writable(caller, flow.locate(tx, caller, target))
    upload = secrets.token_hex(16)
    folder = _folder(state) / upload
    folder.mkdir(mode=0o700)
    (folder / "owner").write_text(caller.user.id)
    project = caller.project.name if caller.project else ""
    base = f"{request.base_url}mlflow/{project}/api/2.0/mlflow-artifacts/mpu/part/{upload}"
    headers = {"Authorization": request.headers.get("authorization", "")}
    parts = [{"url": f"{base}/{n}", "part_number": n, "headers": headers} for n in range(1, count + 1)]
    return JSONResponse({"upload_id": upload, "credentials": parts})


def _parts_folder(state: AppState, caller: Caller, upload: str) -> Path:
    folder = _folder(state) / upload
    known = _UPLOAD_ID.fullmatch(upload) and (folder / "owner").is_file()
    if not known or (folder / "owner").read_text() != caller.user.id:
        raise absent(f"There is no upload '{upload[:80]}'.")
    return folder


async def _put_part(state: State, caller: Tracker, request: Request, upload: str, number: int) -> Response:
    def keep() -> None:
        folder = _parts_folder(state, caller, upload)
        if not 1 <= number <= MAX_PARTS:
            raise invalid("Invalid part number")
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            for chunk in arriving(request):
                file.write(chunk)
        Path(file.name).rename(folder / str(number))

    await to_thread.run_sync(keep)
    return JSONResponse({}, headers={"ETag": f'"{upload}-{number}"'})


def _join_parts(state: State, caller: Tracker, ask: Asked, artifact_path: str) -> JSONResponse:
    target, folder = _target(artifact_path, ask), _parts_folder(state, caller, ask.need_text("upload_id"))
    numbers = sorted(int(part["part_number"]) for part in ask.items("parts") if isinstance(part, dict))
    if not numbers or any(not (folder / str(number)).is_file() for number in numbers):
        raise invalid("Not all parts have arrived: send them, then complete the upload.")

    def joined() -> Iterable[bytes]:
        for number in numbers:
            with (folder / str(number)).open("rb") as part:
                while chunk := part.read(1 << 20):
                    yield chunk

    keep_upload(state, caller, target, joined())
    shutil.rmtree(folder, ignore_errors=True)
    return JSONResponse({})


def _abort_parts(state: State, caller: Tracker, ask: Asked, artifact_path: str) -> JSONResponse:
    shutil.rmtree(_parts_folder(state, caller, ask.need_text("upload_id")), ignore_errors=True)
    return JSONResponse({})


def _presigned(state: State, caller: Tracker, request: Request, artifact_path: str) -> JSONResponse:
    """Where to read a file in parts: here, with the caller's own credential."""
    with state.store.read() as tx:
        found = flow.open_file(tx, caller, flow.locate(tx, caller, artifact_path))
    address = str(request.url.replace(query="")).replace(
        "/mlflow-artifacts/presigned/", "/mlflow-artifacts/artifacts/", 1
    )
    headers = {"Authorization": request.headers.get("authorization", "")}
    return JSONResponse({"url": address, "headers": headers, "file_size": found.place.size})


def _get_run_file(state: State, caller: Tracker, ask: Asked, request: Request) -> Response:
    with state.store.read() as tx:
        found = flow.open_file(tx, caller, flow.of_run(tx, caller, ask.run_id(), ask.need_text("path")))
    return sent(state, found, request.headers.get("range"))


def _get_version_file(state: State, caller: Tracker, ask: Asked, request: Request) -> Response:
    path = flow.check_path(ask.need_text("path"))
    with state.store.read() as tx:
        source = registry.download_uri(tx, caller, ask.need_text("name"), ask.need_text("version"))
        scheme = flow.SCHEME.rstrip("/")
        if not source.startswith(scheme):
            raise absent(f"The files of this version are not kept here: {source}")
        folder = source.removeprefix(scheme).strip("/")
        found = flow.open_file(tx, caller, flow.locate(tx, caller, f"{folder}/{path}".lstrip("/")))
    return sent(state, found, request.headers.get("range"))


def _get_model_file(state: State, caller: Tracker, ask: Asked, request: Request) -> Response:
    path = flow.check_path(ask.need_text("artifact_file_path"))
    model_id = ask.need_text("model_id")
    with state.store.read() as tx:
        found = flow.open_file(tx, caller, flow.locate(tx, caller, f"models/{model_id}/artifacts/{path}"))
    return sent(state, found, request.headers.get("range"))


async def _upload_small(state: State, caller: Tracker, request: Request) -> JSONResponse:
    """What pages send: one small file of a run in a body."""
    run_id, path = request.query_params.get("run_uuid", ""), request.query_params.get("path", "")
    if not run_id:
        raise invalid("Request must specify run_uuid.")
    if not path:
        raise invalid("Request must specify path.")
    flow.check_path(path)
    data = await request.body()
    if not data:
        raise invalid("Request must specify data.")

    def keep() -> None:
        with state.store.read() as tx:
            place = flow.of_run(tx, caller, run_id, path)
        with tempfile.NamedTemporaryFile(dir=_folder(state), prefix="put-") as file:
            file.write(data)
            file.flush()
            flow.write(state.lake, caller, place, Path(file.name))

    await to_thread.run_sync(keep)
    return JSONResponse({})


def _register(to: APIRouter) -> None:
    to.add_api_route("/get-artifact", _get_run_file, methods=["GET"], name="mlflow_get_artifact")
    for path in ("/model-versions/get-artifact", "//model-versions/get-artifact"):
        to.add_api_route(path, _get_version_file, methods=["GET"], name="mlflow_get_version_artifact")
    for prefix in PREFIXES:
        base = f"/{prefix}/2.0/mlflow-artifacts"
        for path, route, verb in (
            ("/artifacts", _list_store, "GET"),
            ("/artifacts/{artifact_path:path}", _download, "GET"),
            ("/artifacts/{artifact_path:path}", _upload, "PUT"),
            ("/artifacts/{artifact_path:path}", _delete, "DELETE"),
            ("/mpu/part/{upload}/{number}", _put_part, "PUT"),
            ("/mpu/create/{artifact_path:path}", _begin_parts, "POST"),
            ("/mpu/complete/{artifact_path:path}", _join_parts, "POST"),
            ("/mpu/abort/{artifact_path:path}", _abort_parts, "POST"),
            ("/presigned/{artifact_path:path}", _presigned, "GET"),
        ):
            name = f"mlflow{route.__name__}_{prefix}"
            to.add_api_route(base + path, route, methods=[verb], name=name)
        to.add_api_route(
            f"/{prefix}/2.0/mlflow/logged-models/{{model_id}}/artifacts/files",
            _get_model_file,
            methods=["GET"],
            name=f"mlflow_get_model_file_{prefix}",
        )
        to.add_api_route(
            f"/{prefix}/2.0/mlflow/upload-artifact",
            _upload_small,
            methods=["POST"],
            name=f"mlflow_upload_small_{prefix}",
        )


_register(router)
