"""Apps: declare a program, feed examples, always have the best model so far."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from easel.clock import Clock, SystemClock
from easel.declare.example_file import home_of
from easel.declare.pairs import objects_of_rows, pairs_of_rows
from easel.declare.program import Program, Tensor
from easel.declare.styles import StyleBook
from easel.errors import InvalidInput, NotFound, TryLater
from easel.lake.folder import scan
from easel.sdk.app_reports import AppReports
from easel.sdk.connection import ask, sent
from easel.sdk.examples import read_declared, read_objects, read_pairs
from easel.sdk.frames import TableFrame, frame_of, is_frame, table_of
from easel.sdk.transfer import Progress, no_progress
from easel.sdk.values import PICTURES, light, to_wire
from easel.wire import app as wire
from easel.wire.model import BaseModel
from easel.wire.terms import SetTerms, Terms

if TYPE_CHECKING:
    from easel.sdk.client import Client

M = TypeVar("M", bound=BaseModel)
BATCH_BYTES = 1_000_000
MOST_QUESTIONS = 10_000
"""Half of what a server accepts in one request."""
PATIENCE_S = 600.0
"""Feeding thousands of pictures, or exporting a network, takes longer than other calls."""
PROPOSING_ROWS = 2_000
"""Rows of a DataFrame from which a program is proposed."""
PART = 10_000
"""Pictures that are uploaded and then looked at together."""
IN_THE_LAKE = (".npz", ".npy", ".parquet")


def _questions(objects: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields as many as one request may hold; one empty request where there are none."""
    batch: list[Any] = []
    size = 0
    for one in objects:
        length = len(json.dumps(one))
        if batch and (size + length > BATCH_BYTES or len(batch) == MOST_QUESTIONS):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += length
    yield batch


def _batches(pairs: Iterable[tuple[Any, Any]]) -> Iterator[list[wire.Pair]]:
    batch: list[wire.Pair] = []
    size = 0
    for source, target in pairs:
        pair = wire.Pair(input=to_wire(source), output=to_wire(target))
        length = len(pair.model_dump_json())
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(pair)
        size += length
    if batch:
        yield batch


class Apps(AppReports):
    """The apps of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    # Programs --------------------------------------------------------------------------------------------

    def match(self, program: str, examples: int = 1_000) -> wire.Matched:
        """Which template fires, and every candidate with its estimated cost."""
        body = ask(wire.MatchProgram, program=program, examples=examples)
        return self._client.connection.post("/api/v1/programs/match", body, wire.Matched)

    def propose(
        self,
        header: Sequence[str] | TableFrame,
        rows: Sequence[Sequence[str]] | None = None,
        target: str | None = None,
    ) -> wire.Proposed:
        """The program that describes a table, from its first rows: a DataFrame, or a header and rows."""
        if is_frame(header):
            names, records = table_of(header)
            rows = [[record[name] for name in names] for record in islice(records, PROPOSING_ROWS)]
        else:
            names = builtins.list(cast("Sequence[str]", header))
        cells = [[str(cell) for cell in row] for row in rows or ()]
        body = ask(wire.ProposeProgram, header=names, rows=cells, target=target)
        return self._client.connection.post("/api/v1/programs/propose", body, wire.Proposed)

    # Apps ------------------------------------------------------------------------------------------------

    def declare(
        self,
        name: str,
        program: str | Program,
        *,
        metric: str | None = None,
        rates: Literal["candidates", "trial"] = "candidates",
    ) -> wire.App:
        """`rates="trial"`: every trial of a network tries a grid of learning rates, as the paper has it; otherwise
        learning rates are candidates that the scheduler chooses among.
        """
        body = ask(wire.DeclareApp, name=name, program=str(program), metric=metric, rates=rates)
        return self._client.connection.post(self._path, body, wire.App)

    def list(self) -> builtins.list[wire.App]:
        return self._client.connection.get(self._path, wire.AppList).items

    def get(self, name: str) -> wire.App:
        return self._client.connection.get(f"{self._path}/{name}", wire.App)

    def set_metric(self, name: str, metric: str) -> wire.App:
        body = ask(wire.ChangeApp, metric=metric)
        return self._client.connection.patch(f"{self._path}/{name}", body, wire.App)

    def set(self, /, name: str, **terms: Any) -> Terms:
        """Change `weight`, `deadline`, `budget`, `until` or `paused`; None takes one away, what is left out stays."""
        body = ask(SetTerms, **terms).model_dump(mode="json", exclude_unset=True)
        return self._client.connection.patch(f"{self._path}/{name}/terms", body, Terms)

    def set_program(self, name: str, program: str | Program) -> wire.App:
        """A wider program: values that may be missing from now on, classes more."""
        body = ask(wire.ChangeApp, program=str(program))
        return self._client.connection.patch(f"{self._path}/{name}", body, wire.App)

    def delete(self, name: str) -> None:
        self._client.connection.delete(f"{self._path}/{name}")

    def trials(self, name: str) -> builtins.list[wire.TrialView]:
        """Candidates tried, with score, cost and the reasons for each decision."""
        return self._client.connection.get(f"{self._path}/{name}/trials", wire.TrialList).items

    def progress(self, name: str) -> wire.TrialProgress:
        """The best score over time."""
        return self._client.connection.get(f"{self._path}/{name}/progress", wire.TrialProgress)

    def next(self, name: str) -> wire.Prospects:
        """What comes next and why, and what is believed of every candidate."""
        return self._client.connection.get(f"{self._path}/{name}/next", wire.Prospects)

    # feed ------------------------------------------------------------------------------------------------

    def feed(
        self, name: str, pairs: Iterable[tuple[Any, Any]] | TableFrame, *, skip_bad: bool = False
    ) -> wire.Fed:
        """Sends pairs in batches; a feed that broke off may be repeated, since pairs fed before are left out.

        Arrays may be NumPy's, pictures a `Path` or the bytes of a file. A DataFrame is fed as a CSV file with its
        columns would be. What lies in a file or folder is fed by `feed_path`.
        """
        if isinstance(pairs, str | os.PathLike):
            raise InvalidInput(
                f"feed takes pairs or a DataFrame; for a file or folder: feed_path({name!r}, ...)"
            )
        if is_frame(pairs):
            header, rows = table_of(pairs)
            app = self.get(name)
            book = StyleBook(app.styles)
            given = pairs_of_rows(read_declared(app.program), header, rows, book)
            return self._feed(name, given, book, skip_bad)
        return self._feed(name, cast("Iterable[tuple[Any, Any]]", pairs), StyleBook(), skip_bad)

    def _feed(self, name: str, pairs: Iterable[tuple[Any, Any]], book: StyleBook, skip_bad: bool) -> wire.Fed:
        """`book` fills as the pairs are read."""
        fed = wire.Fed(new=0, known=0, total=0, refused=[], notes=[])
        told = 0
        for batch in _batches(pairs):
            styles = dict(book.found)
            body = ask(wire.FeedPairs, pairs=batch, skip_bad=skip_bad, styles=styles, first=told + 1)
            fed = _sum(fed, self._post(f"{name}/feed", sent(body), wire.Fed))
            told += len(batch)
        return fed.model_copy(update={"notes": [*book.notes, *fed.notes]})

    def feed_labelled(self, name: str, objects: Iterable[Any], label: Callable[[Any], Any]) -> wire.Fed:
        """Pairs of each object and what `label` says of it; objects of which it says None are left out."""
        labelled = ((one, label(one)) for one in objects)
        return self.feed(name, ((one, answer) for one, answer in labelled if answer is not None))

    def feed_path(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        fit: Literal["stretch", "pad", "crop"] = "stretch",
        skip_bad: bool = False,
        progress: Progress = no_progress,
    ) -> wire.Fed:
        """A file (CSV, JSON lines, Parquet, npz), a folder of pictures with one folder for each class, or a
        folder with `x.npy` and `y.npy`. Repeating it adds nothing twice.
        """
        path = Path(source)
        if not path.exists():
            raise InvalidInput(f"there is no file or folder {source}")
        app = self.get(name)
        if path.is_file() and path.suffix.lower() not in IN_THE_LAKE:
            book = StyleBook(app.styles)
            return self._feed(name, read_pairs(path, read_declared(app.program), book), book, skip_bad)
        if path.is_dir() and any(p.suffix.lower() in PICTURES for p in path.rglob("*")):
            return self._feed_pictures(app, path, fit, skip_bad, progress)
        target = f"/apps/{app.name}/uploads/{path.name}"
        if path.is_dir():
            target += "/"
        self._client.lake.upload(path, target, progress=progress)
        return self.feed_reference(name, target, fit=fit, skip_bad=skip_bad)

    def _feed_pictures(
        self, app: wire.App, folder: Path, fit: wire.Fit, skip_bad: bool, progress: Progress
    ) -> wire.Fed:
        """Part by part: while the server looks at one part, the next is on its way."""
        files = [
            file
            for file in scan(folder, f"/{folder.resolve().name}/")
            if file.local.suffix.lower() in PICTURES
        ]
        goal = read_declared(app.program).output.fields[0]
        # A picture and the picture that is its answer may lie far apart: they are looked at together.
        size = len(files) if isinstance(goal, Tensor) and goal.rank in (2, 3) else PART
        asked: builtins.list[Future[wire.Fed]] = []
        with ThreadPoolExecutor(1) as feeding:
            for start in range(0, len(files), size):
                part = files[start : start + size]
                brought = self._client.lake.upload_files(
                    part, progress=progress, name=lambda file, digest: home_of(app.folder, file.path, digest)
                )
                if any(one.done() and one.exception() is not None for one in asked):
                    break
                asked.append(
                    feeding.submit(
                        self.feed_reference,
                        app.name,
                        f"upload:{brought.id}",
                        fit=fit,
                        skip_bad=skip_bad,
                        more=start + size < len(files),
                    )
                )
        fed = wire.Fed(new=0, known=0, total=0, refused=[], notes=[])
        for one in asked:
            fed = _sum(fed, one.result())
        return fed

    def feed_reference(
        self,
        name: str,
        reference: str,
        *,
        fit: Literal["stretch", "pad", "crop"] = "stretch",
        skip_bad: bool = False,
        more: bool = False,
    ) -> wire.Fed:
        """What lies in the lake already: `/photos/`, a file set `/@photos:3`, or `upload:upl_…`, what an upload
        brought. With `more` the app waits for the next part before it learns.
        """
        body = ask(wire.FeedFiles, reference=reference, fit=fit, skip_bad=skip_bad, more=more)
        return self._post(f"{name}/feed/files", sent(body), wire.Fed)

    def give_vectors(
        self, name: str, source: str | os.PathLike[str], *, progress: Progress = no_progress
    ) -> wire.App:
        """Word vectors for an app that reads text: a GloVe file here, or one in the lake (`/glove/50d.txt`)."""
        path, reference = Path(source), str(source)
        if path.is_file():
            reference = f"{self.get(name).folder}vectors/{path.name}"
            self._client.lake.upload(path, reference, progress=progress)
        body = ask(wire.GiveVectors, reference=reference)
        answer = self._client.connection.request(
            "PUT", f"{self._path}/{name}/vectors", json=sent(body), timeout=PATIENCE_S
        )
        return wire.App.model_validate_json(answer.content)

    # refine ----------------------------------------------------------------------------------------------

    def examples(self, name: str, *filters: str, sort: str = "") -> Iterator[wire.FedExample]:
        """All examples ever fed that pass the filters, such as `class:eq:cat`, `on:eq:false`."""
        params = {"filter": builtins.list(filters), "sort": sort or None}
        return self._client.connection.pages(f"{self._path}/{name}/examples", wire.FedExample, params)

    def example(self, name: str, digest: str) -> wire.ExampleContent:
        return self._client.connection.get(f"{self._path}/{name}/examples/{digest}", wire.ExampleContent)

    def curve(self, name: str, digest: str) -> wire.ExampleCurve:
        """Returns what to draw of an example whose input is a series: at most 120 points a line, with the extremes."""
        return self._client.connection.get(f"{self._path}/{name}/examples/{digest}/curve", wire.ExampleCurve)

    def thumbnail(self, name: str, digest: str) -> bytes:
        """A small PNG."""
        path = f"{self._path}/{name}/examples/{digest}/thumbnail"
        return self._client.connection.request("GET", path).content

    def refine(
        self, name: str, digests: Sequence[str] = (), *, filters: Sequence[str] = (), on: bool
    ) -> builtins.list[str]:
        """Switch these examples, or those that pass the filters; which ones changed."""
        body = ask(wire.Refine, digests=builtins.list(digests), filter=builtins.list(filters), on=on)
        return self._post(f"{name}/refine", sent(body), wire.Refined).changed

    def undo(self, name: str) -> builtins.list[str]:
        """Take back the newest switch."""
        body = ask(wire.Refine, undo=True)
        return self._post(f"{name}/refine", sent(body), wire.Refined).changed

    def suspects(self, name: str, limit: int = 50) -> wire.Suspects:
        """Examples that are most likely mislabelled first, as far as they were judged."""
        return self._client.connection.get(f"{self._path}/{name}/suspects", wire.Suspects, {"limit": limit})

    def judge(self, name: str) -> str:
        """Start the job that judges every example; its id."""
        found = self._post(f"{name}/suspects", {}, wire.Suspects)
        if found.job is None:
            raise NotFound(f"{name} has nothing to judge")
        return found.job

    # infer -----------------------------------------------------------------------------------------------

    def infer_frame(self, name: str, frame: TableFrame) -> Any:
        """A DataFrame with a row for each of `frame`'s, under its index, and a column for each part of the answer: for
        a classifier the class and the probability of each."""
        header, rows = table_of(frame)
        app = self.get(name)
        book = StyleBook(app.styles)
        asked = builtins.list(objects_of_rows(read_declared(app.program), header, rows, book))
        return frame_of(self._infer(name, asked, False).answers, frame)

    def wait(
        self,
        name: str,
        *,
        trials: int = 1,
        score: float | None = None,
        timeout: float | None = None,
        clock: Clock | None = None,
    ) -> wire.App:
        """Waits until the app has run so many trials, and where `score` is given until its best model reaches that."""
        clock = clock or SystemClock()
        started, pause = clock.monotonic(), 0.2
        while True:
            found = self.get(name)
            reached = score is None or (found.best is not None and found.best.shown >= score)
            if found.trials >= trials and found.best is not None and reached:
                return found
            if timeout is not None and clock.monotonic() - started > timeout:
                lacks = f"; {found.lacks}" if found.lacks else ""
                raise TryLater(f"app {name} has run {found.trials} trials after {timeout:g} s{lacks}")
            clock.sleep(pause)
            pause = min(2.0, pause * 1.3)

    @overload
    def infer(self, name: str, objects: Sequence[Any], *, skip_bad: bool = False) -> wire.Answers: ...

    @overload
    def infer(self, name: str, objects: TableFrame) -> Any: ...

    def infer(
        self, name: str, objects: Sequence[Any] | TableFrame, *, skip_bad: bool = False
    ) -> wire.Answers | Any:
        """Answers all objects; a DataFrame is answered with a DataFrame, as `infer_frame` does."""
        if is_frame(objects):
            return self.infer_frame(name, objects)
        return self._infer(name, cast("Sequence[Any]", objects), skip_bad)

    def _infer(self, name: str, objects: Sequence[Any], skip_bad: bool) -> wire.Answers:
        """One answer for each object, all by the same model: the best so far. Large photographs are shrunk first.

        A missing or new value is answered with a note; an object that does not fit refuses the call or, with
        `skip_bad`, is answered with its error.
        """
        batches = builtins.list(_questions(to_wire(light(one)) for one in objects))
        firsts = accumulate((len(batch) for batch in batches), initial=1)
        bodies = [
            sent(ask(wire.Infer, objects=batch, skip_bad=skip_bad, first=first))
            for batch, first in zip(batches, firsts, strict=False)
        ]
        for _ in range(5):
            found = [self._post(f"{name}/infer", body, wire.Answers) for body in bodies]
            if len({one.model for one in found}) == 1:
                break  # else a better model came in between: it answers all
        together = [answer for one in found for answer in one.answers]
        notes = [note for one in found for note in one.notes]
        return found[0].model_copy(update={"answers": together, "notes": notes})

    def infer_path(
        self, name: str, source: str | os.PathLike[str], *, skip_bad: bool = False
    ) -> wire.Answers:
        """The rows of a CSV or JSON-lines file, one picture, or all pictures of a folder."""
        app = self.get(name)
        book = StyleBook(app.styles)
        asked = builtins.list(read_objects(Path(source), read_declared(app.program), book))
        found = self._infer(name, asked, skip_bad)
        return found.model_copy(update={"notes": [*book.notes, *found.notes]})

    def pin(self, name: str, model: str) -> wire.App:
        """Lets this model answer from now on, whatever is found."""
        body = wire.PinModel(model=model)
        return self._client.connection.put(f"{self._path}/{name}/pin", body, wire.App)

    def unpin(self, name: str) -> wire.App:
        answer = self._client.connection.request("DELETE", f"{self._path}/{name}/pin")
        return wire.App.model_validate_json(answer.content)

    def rollback(self, name: str, *, forward: bool = False) -> wire.App:
        """Lets the model answer that answered before the present one; with `forward` the one after it."""
        body = wire.RollBack(forward=forward)
        return self._client.connection.post(f"{self._path}/{name}/rollback", body, wire.App)

    def export(self, name: str, form: Literal["auto", "onnx", "native"] = "onnx") -> bytes:
        """The model that answers as a zip archive with a runnable example; `auto` is ONNX where that can hold it."""
        path = f"{self._path}/{name}/export"
        return self._client.connection.request("GET", path, params={"form": form}, timeout=PATIENCE_S).content

    def sources(self, name: str) -> dict[str, str]:
        """Generated programs feed, refine, infer and a typed module, by file name."""
        return self._client.connection.get(f"{self._path}/{name}/client", wire.GeneratedFiles).files

    def _post(self, path: str, body: Mapping[str, Any], model: type[M]) -> M:
        answer = self._client.connection.request(
            "POST", f"{self._path}/{path}", json=dict(body), timeout=PATIENCE_S
        )
        return model.model_validate_json(answer.content)


def _sum(before: wire.Fed, more: wire.Fed) -> wire.Fed:
    return wire.Fed(
        new=before.new + more.new,
        known=before.known + more.known,
        total=more.total,
        refused=[*before.refused, *more.refused][:100],
        notes=list(dict.fromkeys([*before.notes, *more.notes]))[:20],
    )
