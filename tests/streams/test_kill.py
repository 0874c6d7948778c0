"""Real processes that are killed with SIGKILL at the worst moments, and the run that goes on after each of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from stream_support import BookModel, dataset, verifier
from support import HashEncoder

from merit.memory.store import MemoryStore
from merit.streams import run
from merit.streams.folder import read_trajectories

CHILD = """
import os, signal, sys, time
from pathlib import Path
from stream_support import BookModel, dataset, verifier
from support import HashEncoder
from merit.memory.store import MemoryStore
from merit.streams import folder, memories, run

root, moment, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def countdown(really):
    global count
    count -= 1
    if count == 0:
        really()
        os.kill(os.getpid(), signal.SIGKILL)

write, finalise = folder._write, memories.StreamMemory.finalise

def torn(file, at, data):
    if moment == file.name:
        countdown(lambda: write(file, at, data[: len(data) * 2 // 3]))
    write(file, at, data)

def remembered(self, entry):
    view = finalise(self, entry)
    if moment == "remembered":
        countdown(lambda: None)
    return view

folder._write, memories.StreamMemory.finalise = torn, remembered
print("started", flush=True)
model = BookModel(before=(lambda: time.sleep(0.05)) if moment == "any time" else (lambda: None))
store = MemoryStore.open(root / "memory", HashEncoder())
run(dataset(root / "data"), "merit", 0, model, store, verifier=verifier(), out=root / "run", budget=3)
"""


def child(root: Path, moment: str, count: int) -> subprocess.Popen[str]:
    places = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(root), moment, str(count)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_killed_and_gone_on(tmp_path: Path) -> None:
    """With half a trajectory on disk, after the memory was written but not the line, and at any time."""
    data = dataset(tmp_path / "data")
    whole = run(
        data,
        "merit",
        0,
        BookModel(),
        None,
        verifier=verifier(),
        out=tmp_path / "whole",
        budget=3,
        encoder=HashEncoder(),
    )
    finished = 0
    for moment in ("trajectories.jsonl", "remembered", "any time"):
        process = child(tmp_path, moment, 3)
        assert process.stdout is not None
        process.stdout.readline()
        if moment == "any time":
            deadline = time.monotonic() + 60
            while len(read_trajectories(tmp_path / "run")) < finished + 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.kill()
        assert process.wait(60) == -signal.SIGKILL
        process.stdout.close()
        kept = read_trajectories(tmp_path / "run")
        assert finished < len(kept) < 14
        assert kept == whole[: len(kept)]
        finished = len(kept)
    store = MemoryStore.open(tmp_path / "memory", HashEncoder())
    rows = run(data, "merit", 0, BookModel(), store, verifier=verifier(), out=tmp_path / "run", budget=3)
    assert rows == whole
    seen = [seen.episode_id for view in store.entries() for seen in view.history]
    assert sorted(seen) == sorted(row.entry.episode_id for row in rows if row.entry)
