"""Several real processes on one memory, and processes that are killed: nothing lost, nothing doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry

HEAD = """
import sys, time
from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry
folder = sys.argv[1]
def say(*words): print(*words, flush=True)
def wait(): say("ready"); sys.stdin.readline()
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HEAD + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    """Let all of them run from the same moment on; their lines after "ready"."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=100)[0].split("\n")[:-1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return answers


def test_processes_that_create_finalise_and_allocate_at_once(tmp_path: Path) -> None:
    """All open a memory that does not exist yet, then write the same and different episodes and draw positions
    while one of them compacts."""
    code = """
    number = int(sys.argv[2])
    wait()
    store = MemoryStore.open(folder, HashEncoder())
    for step in range(10):
        position = store.next_position()
        say(position)
        store.finalise(entry(position, episode_id=f"own-{number}-{step}"))
        assert store.finalise(entry(10_000 + step, episode_id=f"shared-{step}", position=0)).successes == 1
        if number == 0 and step % 5 == 4:
            store.compact()
    """
    answers = go([start(code, tmp_path, number) for number in range(3)])
    positions = [int(line) for lines in answers for line in lines]
    assert sorted(positions) == list(range(30))
    for lines in answers:
        assert [int(line) for line in lines] == sorted(map(int, lines))
    first, second = (MemoryStore.open(tmp_path, HashEncoder()) for _ in range(2))
    episodes = [seen.episode_id for view in first.entries() for seen in view.history]
    assert sorted(episodes) == sorted(
        [f"own-{n}-{step}" for n in range(3) for step in range(10)] + [f"shared-{step}" for step in range(10)]
    )
    assert first.entries() == second.entries()
    assert first.next_position() == 30


def test_a_process_sees_at_its_next_call_what_another_wrote(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    other = start(
        """
        store = MemoryStore.open(folder, HashEncoder())
        for line in sys.stdin:
            say(store.counts().observations, ",".join(store.tags()), store.next_position())
        """,
        tmp_path,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    for number in range(3):
        store.finalise(entry(number * 10))
        store.tag(f"t{number}")
        other.stdin.write("\n")
        other.stdin.flush()
        tags = ",".join(f"t{n}" for n in range(number + 1))
        assert other.stdout.readline() == f"{number + 1} {tags} {number * 10 + 1}\n"
    other.communicate()


def test_two_processes_forget_and_write_the_same_entry(tmp_path: Path) -> None:
    """Rows that vanish and versions that are dropped under a reader must not stop it."""
    MemoryStore.open(tmp_path, HashEncoder()).finalise_many([entry(n) for n in range(40)])
    forgets = """
    store = MemoryStore.open(folder, HashEncoder())
    wait()
    for number in range(6):
        assert store.forget(entry(number).id) == 1
    """
    writes = """
    store = MemoryStore.open(folder, HashEncoder())
    wait()
    for number in range(100, 115):
        store.finalise(entry(number))
        assert f"e{number}" in {view.episode_id for view in store.entries()}
    """
    go([start(forgets, tmp_path), start(writes, tmp_path), start(writes.replace("100, 115", "200, 215"), tmp_path)])
    left = {seen.episode_id for view in MemoryStore.open(tmp_path, HashEncoder()).entries() for seen in view.history}
    assert left == {f"e{n}" for n in [*range(6, 40), *range(100, 115), *range(200, 215)]}


def test_killed_between_write_and_return(tmp_path: Path) -> None:
    """kill -9, 20 times, at the moment after the commit and before finalise returns, four side by side. Whoever
    does the same episode again finds it done: nothing is lost, nothing doubled."""
    code = """
    import os, signal
    store = MemoryStore.open(folder, HashEncoder())
    append = store._log.append
    def append_and_die(rows):
        append(rows)
        os.kill(os.getpid(), signal.SIGKILL)
    store._log.append = append_and_die
    store.finalise(entry(int(sys.argv[2])))
    """
    for first in range(0, 20, 4):
        for process in [start(code, tmp_path, number) for number in range(first, first + 4)]:
            process.communicate(timeout=100)
            assert process.returncode == -signal.SIGKILL
    store = MemoryStore.open(tmp_path, HashEncoder())
    assert [view.episode_id for view in store.entries()] == [f"e{number}" for number in range(20)]
    for number in range(20):
        assert store.finalise(entry(number)).successes == 1
    assert store.counts().observations == 20


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """kill -9 in the middle of a run of finalises: all that had returned are there, at most one more is, the
    memory opens, and going on from the start gives each episode once."""
    code = """
    store = MemoryStore.open(folder, HashEncoder())
    say("open")
    for number in range(1000):
        store.finalise(entry(number))
        say(number)
    """
    dice = random.Random(0)
    for _ in range(3):
        process = start(code, tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(0.2 + dice.random() / 4)
        os.kill(process.pid, signal.SIGKILL)
        returned = [int(line) for line in process.communicate()[0].split("\n")[:-1] if line]
        store = MemoryStore.open(tmp_path, HashEncoder())
        there = [int(view.episode_id[1:]) for view in store.entries()]
        assert there == list(range(len(there)))
        assert len(there) >= len(returned)
