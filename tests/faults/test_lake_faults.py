"""The lake when things go wrong: full disks, buckets that fail, processes killed at the worst moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.lake.conftest import bucket, s3_endpoint

from easel.errors import InvalidInput, TryLater
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.s3 import S3Blobs
from easel.lake.blobs.store import put
from easel.lake.digest import Corrupt, digest_of, verified
from easel.store.engine import Store
from easel.testing.databases import new_sqlite
from easel.testing.s3 import Bucket
from easel.testing.server import running

__all__ = ["bucket", "s3_endpoint"]  # fixtures

PROGRAM = """
    import os, signal, sys
    from pathlib import Path
    from sqlalchemy import event, select
    from easel.declare.roles import Role
    from easel.flow.lake import upload
    from easel.flow.lake.ingest import send
    from easel.flow.lake.upload import Lake
    from easel.ids import TokenId
    from easel.lake.blobs.local import LocalBlobs
    from easel.lake.folder import scan
    from easel.records.identity import Caller
    from easel.store import identity
    from easel.store.engine import Store
    from easel.store.migrate import migrate
    from easel.store.schema.identity import projects, users

    home, content, die = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    store = Store(f"sqlite:///{home}/easel.sqlite")
    migrate(store, backup=lambda _revision: None)
    with store.write() as tx:
        if not identity.any_user(tx):
            project = identity.add_project(tx, "p", "")
            user = identity.add_user(tx, "u", home=project.id)
        else:
            project = identity.Project(*tx.execute(select(projects)).one())
            row = tx.execute(select(users.c.id, users.c.name, users.c.platform_admin, users.c.created_at,
                                    users.c.disabled_at)).one()
            user = identity.User(*row)
    who = Caller(user, TokenId("t"), project, Role.MEMBER)

    class Blobs(LocalBlobs):
        def promote(self, stage, digest):
            super().promote(stage, digest)
            if die == "between blob and row":
                os.kill(os.getpid(), signal.SIGKILL)

    lake = Lake(store, Blobs(home / "blobs"))
    (home / "x").write_text(content)
    sessions = home / "session"
    if sessions.exists():
        session = sessions.read_text()
    else:
        with store.write() as tx:
            session = upload.start(tx, who).id
        sessions.write_text(session)
    send(lake, who, session, scan(home / "x", "/a"))

    if die.startswith("commit"):
        seen = [int(die.split()[1])]

        @event.listens_for(store.engine, "after_cursor_execute")
        def count(*_):
            seen[0] -= 1
            if seen[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    with store.write() as tx:
        upload.commit(tx, who, session)
    sessions.unlink()
    with store.read() as tx:
        from easel.store.lake import artifacts
        found = artifacts.versions_of(tx, who.project_id, "file", "/a")
    print(" ".join(f"{v.version}:{v.size}" for v in reversed(found)))
"""


def run(home: Path, content: str, die: str) -> subprocess.CompletedProcess[str]:
    new_sqlite(home / "easel.sqlite")
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(home), content, die]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("moment", ["between blob and row", "commit 2", "commit 5", "commit 8"])
def test_kill_9_in_an_upload_loses_nothing_and_leaves_no_gap(tmp_path: Path, moment: str) -> None:
    first = run(tmp_path, "one", "never")
    assert first.stdout.split() == ["1:3"], first.stderr
    assert run(tmp_path, "three", moment).returncode == -signal.SIGKILL
    resumed = run(tmp_path, "three", "never")  # the same session goes on
    assert resumed.stdout.split() == ["1:3", "2:5"], resumed.stderr


def test_a_full_disk_is_told_and_the_upload_can_go_on(tmp_path: Path) -> None:
    program = """
        import resource, signal, sys
        from pathlib import Path
        from easel.errors import TryLater
        from easel.lake.blobs.local import LocalBlobs
        from easel.lake.blobs.store import put
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        blobs = LocalBlobs(Path(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        try:
            put(blobs, "a", bytes(5000))
        except TryLater as error:
            print(error.message)
        assert list(blobs.objects()) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        put(blobs, "b", bytes(5000))
        print(len(list(blobs.objects())))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "disk is full" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "1"


def test_damaged_bytes_are_never_handed_out_as_whole(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    digest = put(blobs, "a", b"precious")
    path = blobs.path(digest)
    assert path is not None
    path.chmod(0o644)
    path.write_bytes(b"precioux")
    with pytest.raises(Corrupt):
        list(verified(blobs.read(digest), digest))


class Trouble(BaseHTTPRequestHandler):
    """Stands before an S3 server: answers 503, or cuts bodies off, so many times; then passes everything on."""

    target: str
    refuse = 0
    cut = 0
    protocol_version = "HTTP/1.0"

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        kind = type(self)
        if kind.refuse > 0:
            kind.refuse -= 1
            self.send_error(503)
            return
        where = urlsplit(self.target)
        inner = HTTPConnection(where.hostname or "", where.port)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in {"connection", "expect"}}
        inner.request(self.command, self.path, body, headers)
        answer = inner.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(content)))
        self.end_headers()
        if self.command == "GET" and kind.cut > 0 and len(content) > 1000:
            kind.cut -= 1
            content = content[: len(content) // 2]
        self.wfile.write(content)
        inner.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 - the library's names

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Silent."""


@contextmanager
def standing_before(bucket: Bucket, refuse: int = 0, cut: int = 0) -> Iterator[tuple[str, type[Trouble]]]:
    """An address that leads to the bucket through trouble, and the trouble, which can be changed."""
    handler = type("Here", (Trouble,), {"target": bucket.endpoint, "refuse": refuse, "cut": cut})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def troubled(bucket: Bucket, refuse: int = 0, cut: int = 0) -> Iterator[S3Blobs]:
    with standing_before(bucket, refuse, cut) as (endpoint, _):
        yield bucket.blobs(endpoint)


def test_a_bucket_that_answers_503_for_a_while_is_asked_again(bucket: Bucket) -> None:
    with troubled(bucket, refuse=2) as blobs:
        digest = put(blobs, "a", b"patience")
        assert b"".join(blobs.read(digest)) == b"patience"


def test_a_bucket_that_stays_away_is_told_and_nothing_is_stored(bucket: Bucket) -> None:
    with troubled(bucket, refuse=1000) as blobs, pytest.raises(TryLater, match="bucket"):
        put(blobs, "a", b"never")
    assert list(bucket.blobs().objects()) == []


def test_a_body_that_is_cut_off_is_taken_up_where_it_broke(bucket: Bucket) -> None:
    data = os.urandom(100_000)
    digest = put(bucket.blobs(), "a", data)
    with troubled(bucket, cut=2) as blobs:
        assert digest_of(b"".join(blobs.read(digest))) == digest


def test_a_body_that_is_always_cut_off_is_told(bucket: Bucket) -> None:
    digest = put(bucket.blobs(), "a", os.urandom(100_000))
    with troubled(bucket, cut=1000) as blobs, pytest.raises(TryLater):
        list(blobs.read(digest))


def test_a_presigned_part_goes_straight_to_the_bucket(bucket: Bucket) -> None:
    blobs = bucket.blobs()
    stage = blobs.begin("direct", 5)
    url = blobs.part_url(stage, 1, 60)
    assert url is not None
    assert httpx.put(url, content=b"hello").status_code == 200
    assert blobs.parts(stage) == {1}
    from easel.lake.blobs.store import Incoming

    blobs.check(stage, Incoming(digest_of(b"hello"), 5))
    blobs.promote(stage, digest_of(b"hello"))
    read = blobs.read_url(digest_of(b"hello"), 1, 3, 60)
    assert read is not None
    assert httpx.get(read, headers={"Range": "bytes=1-3"}).content == b"ell"


def test_the_whole_lake_on_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    settings = {
        "blobs_url": f"s3://{bucket.name}/lake",
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": "test",
        "s3_secret_key": "test",
    }
    with running(tmp_path, **settings) as server:
        root = server.client()
        root.projects.create("p")
        lake = root.in_project("p").lake
        source = tmp_path / "source"
        source.mkdir()
        for i in range(50):
            (source / f"{i}").write_bytes(os.urandom(i * 10))
        (source / "big").write_bytes(os.urandom(400_000))
        lake.upload(source, "/d/")
        lake.create_file_set("S", ["/d/"])
        assert lake.checkout("S", tmp_path / "out") == 51
        for path in source.iterdir():
            assert (tmp_path / "out/d" / path.name).read_bytes() == path.read_bytes()
        assert not any(p.is_file() for p in (tmp_path / "home/blobs").rglob("*"))


def test_a_download_from_a_bucket_that_breaks_off_or_answers_503_goes_on(
    bucket: Bucket, tmp_path: Path
) -> None:
    data = os.urandom(700_000)
    (tmp_path / "big").write_bytes(data)
    with standing_before(bucket) as (endpoint, trouble):
        settings = {
            "blobs_url": bucket.url,
            "s3_endpoint": endpoint,
            "s3_access_key": "test",
            "s3_secret_key": "test",
        }
        with running(tmp_path, **settings) as server:
            root = server.client()
            root.projects.create("p")
            lake = root.in_project("p").lake
            lake.upload(tmp_path / "big", "/d/")
            trouble.cut, trouble.refuse = 2, 1
            assert lake.cat("/d/big") == data
            assert (trouble.cut, trouble.refuse) == (0, 0), "both came to pass"
            trouble.cut = 2
            assert lake.read_range("/d/big", 1000, 600_000) == data[1000:600_000]
            trouble.cut = 1000
            with pytest.raises(TryLater, match="stop coming"):
                lake.download("/d/big", tmp_path / "never")
            assert not (tmp_path / "never").exists()


def test_a_killed_server_forgets_nothing_that_was_uploaded(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("p")
        lake = root.in_project("p").lake
        source = tmp_path / "f"
        source.write_bytes(os.urandom(300_000))
        session = lake.start_upload()
        server.kill()
        server.start()
        done = server.client(project="p").lake.upload(source, "/f", resume=session.id)
        assert done.state == "committed"
        server.kill()
        server.start()
        assert server.client(project="p").lake.cat("/f") == source.read_bytes()


def test_a_truncated_or_forged_part_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("p")
        client = root.in_project("p")
        session, data = client.lake.start_upload(), bytes(300_000)
        path, digest = f"{client.root}/uploads/{session.id}", digest_of(data).hex()
        http = client.connection.http
        http.post(f"{path}/files", json={"files": [{"path": "/a", "size": len(data), "hash": digest}]})
        new = {"objects": [{"hash": digest, "size": len(data)}]}
        url = http.post(f"{path}/objects", json=new).json()["transfers"][0]["parts"][0]["url"]
        short = httpx.put(server.address + url, content=data[:1000])
        assert (short.status_code, short.json()["kind"]) == (422, "invalid-input")
        assert httpx.put(server.address + url, content=data + b"x").status_code == 422
        assert (
            httpx.put(server.address + url.replace("signature=", "signature=0"), content=data).status_code
            >= 400
        )
        assert httpx.put(server.address + url, content=bytes(299_999) + b"x").status_code == 204
        with pytest.raises(InvalidInput, match="hash to"):
            client.connection.request("POST", f"{path}/objects/{digest}/finish")
        answer = http.post(f"{path}/commit")
        assert answer.status_code == 409
        url = http.post(f"{path}/objects", json=new).json()["transfers"][0]["parts"][0]["url"]
        assert httpx.put(server.address + url, content=data).status_code == 204
        client.connection.request("POST", f"{path}/objects/{digest}/finish")
        assert client.lake.commit_upload(session.id).state == "committed"
        assert [v.version for v in client.lake.versions("/a")] == [1]


def test_the_store_stays_usable_after_a_failed_commit(tmp_path: Path) -> None:
    assert run(tmp_path, "one", "commit 3").returncode == -signal.SIGKILL
    store = Store(f"sqlite:///{tmp_path}/easel.sqlite")
    with store.read() as tx:
        assert tx.conn.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
    store.close()
