"""The files of deploy/ say what they should: parsed by the programs and by the settings that will read them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from easel.cli.main import COMMANDS
from easel.serve.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXTS = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
KINDS = {
    "ConfigMap",
    "Service",
    "StatefulSet",
    "PersistentVolumeClaim",
    "Deployment",
    "Ingress",
    "RayCluster",
}


def manifests() -> list[dict[str, Any]]:
    return [
        document
        for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
    ]


def pods() -> list[tuple[str, dict[str, Any]]]:
    return [
        (document["metadata"]["name"], document["spec"]["template"]["spec"])
        for document in manifests()
        if document["kind"] in ("Deployment", "StatefulSet")
    ]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(DEPLOY)))
def test_every_setting_that_is_named_exists(file: Path) -> None:
    known = {f"EASEL_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"\bEASEL_[A-Z0-9_]+", file.read_text()))
    assert named - known - {"EASEL_IMAGE", "EASEL_HOST", "EASEL_TOKEN"} == set()


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(DEPLOY)))
def test_every_command_that_is_named_exists(file: Path) -> None:
    called = re.findall(r"(?:bin/easel|`easel|\"easel\", \"|\[easel, )\s*([a-z-]+)", file.read_text())
    assert set(called) <= set(COMMANDS)


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda unit: unit.name)
def test_systemd_takes_the_units(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed: Debian's package systemd has it")
    text = unit.read_text().replace("/opt/easel/bin/easel", "/bin/true")
    copy = tmp_path / unit.name
    copy.write_text(text)
    done = subprocess.run([program, "verify", str(copy)], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert told == []


def test_units_restart_and_name_no_secret() -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        text = unit.read_text()
        assert re.search(r"^Restart=(on-failure|always)$", text, re.MULTILINE)
        assert not re.search(r"(PASSWORD|SECRET|TOKEN)\w*=\S", text)


def test_the_compose_file_refers_only_to_what_it_has() -> None:
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    services, volumes = compose["services"], set(compose["volumes"])
    given = set(re.findall(r"^(\w+)=", (DEPLOY / "compose" / ".env.example").read_text(), re.MULTILINE))
    needed = set(re.findall(r"\$\{(\w+):\?\}", (DEPLOY / "compose" / "compose.yaml").read_text()))
    assert needed <= given
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in volumes or (DEPLOY / "compose" / source).exists(), volume
    assert services["controller"]["deploy"]["replicas"] == 2


def test_kubernetes_documents_are_complete_and_refer_to_one_another() -> None:
    documents = manifests()
    names = {(document["kind"], document["metadata"]["name"]) for document in documents}
    assert {document["kind"] for document in documents} <= KINDS
    assert len(names) == len(documents)
    for document in documents:
        assert document["apiVersion"]
        assert document["metadata"]["namespace"] == "easel"
    for name, pod in pods():
        mounted = {mount["name"] for each in pod["containers"] for mount in each.get("volumeMounts", ())}
        templates = {
            claim["metadata"]["name"]
            for document in documents
            if document["metadata"]["name"] == name
            for claim in document["spec"].get("volumeClaimTemplates", ())
        }
        volumes = {volume["name"] for volume in pod.get("volumes", ())} | templates
        assert mounted <= volumes, name
        for container in pod["containers"]:
            assert container["resources"]["requests"], name
            for source in container.get("envFrom", ()):
                assert ("ConfigMap", source["configMapRef"]["name"]) in names


def test_every_selector_finds_its_pods() -> None:
    labels = [
        document["spec"]["template"]["metadata"]["labels"]
        for document in manifests()
        if document["kind"] in ("Deployment", "StatefulSet")
    ]
    for document in manifests():
        if document["kind"] == "Service":
            assert document["spec"]["selector"] in labels
        if document["kind"] in ("Deployment", "StatefulSet"):
            assert document["spec"]["selector"]["matchLabels"] in labels
        if document["kind"] == "Ingress":
            (rule,) = document["spec"]["rules"]
            backend = rule["http"]["paths"][0]["backend"]["service"]["name"]
            assert any(
                each["kind"] == "Service" and each["metadata"]["name"] == backend for each in manifests()
            )


def test_proxies_wait_longer_than_workers_do() -> None:
    nginx = (DEPLOY / "proxy" / "nginx.conf").read_text()
    assert nginx.count("{") == nginx.count("}")
    found = re.search(r"proxy_read_timeout (\d+)s", nginx)
    assert found is not None
    assert int(found[1]) > 60
    assert "response_header_timeout 120s" in (DEPLOY / "proxy" / "Caddyfile").read_text()
