"""A memory on object storage: ``s3://…``, written by two real processes at once, against a local S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from merit.memory.store import MemoryStore
from merit.settings import settings
from tests.memory.encoders import HashEncoder
from tests.memory.test_processes import go, start

moto = pytest.importorskip("moto.server", reason="the S3 server of the tests is not installed (make test installs it)")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty place for a memory; processes started from here reach the server too."""
    import boto3

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    access = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    for name, value in (access | {"AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=address, region_name="us-east-1").create_bucket(Bucket="merit")
    yield "s3://merit/memory"
    server.stop()


def test_two_processes_write_to_one_bucket_at_once(
    bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both create the memory, draw positions and finalise their own and the same episodes; one forgets and compacts
    meanwhile. Nothing is lost, doubled or given twice."""
    code = """
    number = int(sys.argv[2])
    wait()
    store = MemoryStore.open(folder, HashEncoder())
    for step in range(2):
        position = store.next_position()
        say(position)
        store.finalise(entry(position, episode_id=f"own-{number}-{step}"))
        assert store.finalise(entry(10_000 + step, episode_id=f"shared-{step}", position=0)).successes == 1
    if number == 0:
        store.forget(entry(10_000).id)
        store.compact()
    """
    answers = go([start(code, bucket, number) for number in range(2)])
    assert sorted(int(line) for lines in answers for line in lines) == list(range(4))
    monkeypatch.setenv("MERIT_MEMORY", bucket)
    settings.cache_clear()
    store = MemoryStore.open(settings().memory_uri, HashEncoder())
    episodes = [seen.episode_id for view in store.entries() for seen in view.history]
    own = [f"own-{number}-{step}" for number in range(2) for step in range(2)]
    assert sorted(episodes) == sorted([*own, *(f"shared-{step}" for step in range(1, 2))])
    assert store.next_position() == 4
    assert store.stats().uri == bucket
    store.export_jsonl(tmp_path)
    assert MemoryStore.open("memory://", HashEncoder()).import_jsonl(tmp_path) == 5
