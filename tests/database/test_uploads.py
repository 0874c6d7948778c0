"""The store of uploads: whose they are, what is kept of them, that nothing half-done or foreign is ever seen."""

from __future__ import annotations

import io
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import build_shop

from merit.database import Database, uploads
from merit.database.conversion import FileKind
from merit.errors import BadInput
from merit.settings import settings

ANN, BOB = "a" * 32, "b" * 32


@pytest.fixture
def shop(tmp_path: Path) -> bytes:
    return build_shop(tmp_path / "source.sqlite").read_bytes()


def everything() -> list[Path]:
    """All that lies in the uploads, the marks of owners aside."""
    return [path for path in settings().uploads_dir.rglob("*") if path.is_file() and path.name != ".seen"]


def test_an_upload_is_found_again(shop: bytes) -> None:
    upload = uploads.add(ANN, shop, "My shop (final).db")
    assert (upload.title, upload.kind, upload.database_id) == ("My shop (final).db", "sqlite", "my_shop_final")
    assert upload.report.ok
    assert upload.report.tables == ("product", "sale")
    assert uploads.get(ANN, upload.id) == upload
    assert uploads.list_of(ANN) == [upload]
    assert upload.path.read_bytes() == shop
    assert Database.open(upload.path, upload.database_id).row_count("sale") == 3


def test_another_owner_is_told_what_a_stranger_is_told(shop: bytes) -> None:
    upload = uploads.add(ANN, shop, "shop.db")
    assert uploads.list_of(BOB) == []
    for owner, id in ((BOB, upload.id), (BOB, "0" * 32), (ANN, "0" * 32)):
        for ask in (uploads.get, uploads.remove, uploads.questions, uploads.records):
            with pytest.raises(BadInput) as caught:
                ask(owner, id)
            assert str(caught.value) == uploads.UNKNOWN
    assert uploads.list_of(ANN) == [upload]


@pytest.mark.parametrize(
    "owner",
    ["", ".", "..", "../" + ANN, f"{ANN}/..", "a/b", "a\\b", "/etc", "a\0b", ".a", "-a", "é", "a" * 65, "a\n", "a b"],
)
def test_an_owner_that_is_no_plain_name_reaches_no_folder(shop: bytes, owner: str) -> None:
    """The name comes out of a cookie: whoever writes it must not get out of their folder."""
    uploads.add(ANN, shop, "shop.db")
    before = sorted(settings().home.rglob("*"))
    for ask in (
        lambda: uploads.add(owner, shop, "x.db"),
        lambda: uploads.list_of(owner),
        lambda: uploads.get(owner, "0" * 32),
        lambda: uploads.remove_owner(owner),
    ):
        with pytest.raises(BadInput):
            ask()
    assert sorted(settings().home.rglob("*")) == before


@pytest.mark.parametrize("id", ["", "..", f"../{ANN}", "a/../b", "0" * 31, "0" * 33, "G" * 32, "0" * 31 + "\n"])
def test_an_id_that_is_none_is_unknown(shop: bytes, id: str) -> None:
    uploads.add(ANN, shop, "shop.db")
    with pytest.raises(BadInput, match="not on this machine"):
        uploads.get(ANN, id)


NAMES = [
    "../../etc/passwd", "C:\\windows\\a.db", "a\0b.db", "\u202egnp.db", "<b>x</b>.db", "", "." * 300, "con.db",
    "a\nb.db", "/",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_clients_name_is_no_path(shop: bytes, name: str) -> None:
    upload = uploads.add(ANN, shop, name)
    assert len(upload.title) <= 120
    assert upload.title.isprintable()
    assert upload.title
    names = {part for path in settings().home.rglob("*") for part in path.relative_to(settings().home).parts}
    assert names == {"uploads", ANN, ".seen", upload.id, "database.sqlite", "upload.json"}
    assert upload.database_id.replace("_", "").isalnum()
    assert upload.database_id.isascii()


def test_ids_of_databases_are_unlike_each_other_and_the_samples(shop: bytes) -> None:
    """The id stands in prompts and memory: removing one upload must not forget another, or a sample."""
    names = ["shop.db", "SHOP.sqlite", "shop.db", "library.db", "日本.db", "!!!.db"]
    ids = [uploads.add(ANN, shop, name).database_id for name in names]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & set(uploads.samples.ids())
    assert uploads.add(BOB, shop, "日本.db").database_id == "database"


def test_rights(shop: bytes) -> None:
    upload = uploads.add(ANN, shop, "shop.db")
    uploads.set_questions(ANN, upload.id, b'[{"question": "How many?", "gold_sql": "SELECT count(*) FROM sale"}]')
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in settings().uploads_dir.rglob("*")}
    assert modes == {
        ANN: 0o700,
        ".seen": 0o600,
        upload.id: 0o700,
        "database.sqlite": 0o400,
        "upload.json": 0o600,
        "questions.json": 0o600,
    }
    assert stat.S_IMODE(settings().uploads_dir.stat().st_mode) == 0o700


class Endless(io.RawIOBase):
    """A stream that never ends; counts what was taken."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert 0 < size <= 1 << 20, "a MiB at a time, never the whole"
        self.taken += size
        return b"SQLite format 3\0".ljust(size, b"\0")


def test_the_limit_is_kept_while_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIT_UPLOAD_LIMIT_MB", "2")
    settings.cache_clear()
    stream = Endless()
    with pytest.raises(BadInput, match="larger than 2 MB"):
        uploads.add(ANN, stream, "x.db")
    assert stream.taken == 3 << 20
    with pytest.raises(BadInput, match="larger than 2 MB"):
        uploads.add(ANN, bytes((2 << 20) + 1), "x.db")
    assert everything() == []


def test_a_file_of_exactly_the_limit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIT_UPLOAD_LIMIT_MB", "1")
    settings.cache_clear()
    staged = uploads.stage(ANN, io.BytesIO(b"a,b\n" + b"1,2\n" * ((1 << 18) - 1)), "x.csv")
    assert staged.size == 1 << 20


def test_a_full_disk_is_said_before_anything_is_written(shop: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(BadInput, match="not enough room"):
        uploads.add(ANN, shop, "x.db")
    assert everything() == []


def test_a_stream_that_breaks_leaves_nothing() -> None:
    class Breaking(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(BadInput, match="could not be kept"):
        uploads.add(ANN, Breaking(), "x.db")
    assert everything() == []


@pytest.mark.parametrize("data", [b"", b"hello", bytes(5000), b"SQLite format 3\0", b"PK\3\4 zip", b"a,b\n1,2\n"])
def test_what_is_refused_leaves_nothing(data: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        uploads.add(ANN, data, "x.db")
    assert str(caught.value).endswith(".")
    assert [path for path in (settings().uploads_dir / ANN).iterdir() if path.name != ".seen"] == []


def test_no_link_is_followed(shop: bytes, tmp_path: Path) -> None:
    """Whoever can put a link into the folder of an owner must not read another's files through it."""
    upload = uploads.add(ANN, shop, "shop.db")
    home = settings().uploads_dir
    home.joinpath(BOB).mkdir()
    home.joinpath(BOB, "0" * 32).symlink_to(upload.path.parent)
    copied = home / BOB / ("1" * 32)
    copied.mkdir()
    copied.joinpath("database.sqlite").symlink_to(upload.path)
    copied.joinpath("upload.json").write_bytes(upload.path.with_name("upload.json").read_bytes())
    assert uploads.list_of(BOB) == []
    home.joinpath("c").symlink_to(home / ANN)
    with pytest.raises(BadInput):
        uploads.list_of("c")
    assert uploads.expire(time.time() + 10 * uploads.OWNER_EXPIRES_AFTER_S) == (ANN, BOB)


def test_removing(shop: bytes) -> None:
    first, second = uploads.add(ANN, shop, "a.db"), uploads.add(ANN, shop, "b.db")
    assert uploads.remove(ANN, first.id) == first
    assert uploads.list_of(ANN) == [second]
    assert not first.path.parent.exists()
    with pytest.raises(BadInput):
        uploads.get(ANN, first.id)
    uploads.remove_owner(ANN)
    assert everything() == []
    uploads.remove_owner(ANN)


def test_a_database_that_is_open_survives_its_removal_as_an_error(shop: bytes) -> None:
    upload = uploads.add(ANN, shop, "a.db")
    database = Database.open(upload.path, upload.database_id)
    uploads.remove(ANN, upload.id)
    assert database.execute("SELECT 1 FROM sale").error == "unable to open database file"


def test_idle_owners_expire(shop: bytes) -> None:
    now = time.time()
    old, new = uploads.add(ANN, shop, "a.db"), uploads.add(BOB, shop, "b.db")
    for path in (old.path.parents[1] / ".seen", new.path.parents[1] / ".seen"):
        os.utime(path, (now - 2 * uploads.OWNER_EXPIRES_AFTER_S,) * 2)
    uploads.list_of(BOB)  # who looks is not idle
    seen: list[str] = []
    assert uploads.expire(now, seen.append) == (ANN,)
    assert seen == [ANN]
    assert uploads.list_of(ANN) == []
    assert uploads.list_of(BOB) == [new]


def test_memory_that_cannot_be_forgotten_keeps_the_folder(shop: bytes) -> None:
    uploads.add(ANN, shop, "a.db")

    def fail(owner: str) -> None:
        raise BadInput("The memory cannot be opened.")

    later = time.time() + 2 * uploads.OWNER_EXPIRES_AFTER_S
    with pytest.raises(BadInput):
        uploads.expire(later, fail)
    assert len(everything()) == 2
    assert uploads.expire(later) == (ANN,)


def test_what_a_crash_left_goes_away(shop: bytes) -> None:
    staged = uploads.stage(ANN, shop, "a.db")
    home = staged.path.parents[1]
    left = home / ".outgoing-123"
    left.mkdir()
    (left / "database.sqlite").write_bytes(shop)
    gone = settings().uploads_dir / ".outgoing-456"
    gone.mkdir()
    uploads.expire()
    assert not left.exists()
    assert not gone.exists()
    assert staged.path.exists(), "somebody may be looking at its preview"
    uploads.expire(time.time() + uploads.STAGING_EXPIRES_AFTER_S + 60)
    assert not staged.path.exists()
    with pytest.raises(BadInput, match="upload it again"):
        uploads.accept(staged)


def test_staged_files_belong_to_their_owner(shop: bytes) -> None:
    staged = uploads.stage(ANN, shop, "a.db")
    foreign = uploads.Staged(BOB, staged.title, staged.path, FileKind.SQLITE, staged.size)
    with pytest.raises(BadInput):
        uploads.accept(foreign)
    uploads.discard(foreign)
    assert staged.path.exists()
    uploads.discard(staged)
    assert not staged.path.parent.exists()


def test_a_number_of_uploads_is_the_most(shop: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_UPLOADS", 2)
    uploads.add(ANN, shop, "a.db")
    uploads.add(ANN, shop, "a.db")
    with pytest.raises(BadInput, match="Remove one first"):
        uploads.add(ANN, shop, "a.db")
    uploads.add(BOB, shop, "a.db")


def test_many_at_once(shop: bytes) -> None:
    """Uploads, removals and looks of several threads: nobody sees half an upload, nobody fails."""
    wrong: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for upload in uploads.list_of(ANN):
                if not upload.report.ok or not upload.title:
                    wrong.append(upload.id)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda number: uploads.add(ANN, shop, "same.db"), range(12)))
            list(pool.map(lambda upload: uploads.remove(ANN, upload.id), made[::2]))
    finally:
        done.set()
        watcher.join()
    assert wrong == []
    assert len({upload.database_id for upload in made}) == len(made)
    assert {upload.id for upload in uploads.list_of(ANN)} == {upload.id for upload in made[1::2]}


def test_what_goes_while_it_is_looked_at_is_gone_and_no_fault(shop: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """One upload listed the folders of others and then asked for the age of one that had been taken in meanwhile."""
    kept = uploads.add(ANN, shop, "kept.db")
    home = kept.path.parent.parent
    glob = Path.glob

    def late(folder: Path, pattern: str) -> list[Path]:
        return [*glob(folder, pattern), folder / ".incoming-gone", folder / ("0" * 32)]

    monkeypatch.setattr(Path, "glob", late)
    assert [upload.id for upload in uploads.list_of(ANN)] == [kept.id]
    assert uploads.add(ANN, shop, "another.db").database_id == "another"
    assert uploads.expire() == ()
    uploads._vanish(home / "gone")
    assert uploads._last_seen(home / "gone" / "too") is None


def test_two_at_once_get_two_names_for_prompts(shop: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looked which names are free before the other had taken its own; removing one forgot the other's memory."""
    free_id = uploads._free_id

    def slowly(owner: str, title: str) -> str:
        found = free_id(owner, title)
        time.sleep(0.2)
        return found

    monkeypatch.setattr(uploads, "_free_id", slowly)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: uploads.add(ANN, shop, "same.db"), range(2)))
    assert {upload.database_id for upload in made} == {"same", "same_2"}


def test_facts_that_cannot_be_read_are_no_upload(shop: bytes) -> None:
    upload = uploads.add(ANN, shop, "a.db")
    facts = upload.path.with_name("upload.json")
    for text in ("", "[]", "{}", '{"report": 3}'):
        facts.write_text(text)
        assert uploads.list_of(ANN) == []


def test_own_questions_are_kept_and_replaced(shop: bytes) -> None:
    upload = uploads.add(ANN, shop, "a.db")
    assert uploads.questions(ANN, upload.id) == []
    one = b'{"question": "How many sales?", "gold_sql": "SELECT count(*) FROM sale"}'
    first = uploads.set_questions(ANN, upload.id, one)
    assert uploads.questions(ANN, upload.id) == first
    assert first[0].database_id == upload.database_id
    assert first[0].gold_sql == "SELECT count(*) FROM sale"
    with pytest.raises(BadInput, match="Line 1"):
        uploads.set_questions(ANN, upload.id, b'{"question": "How many?", "gold_sql": "SELECT nothing FROM sale"}')
    assert uploads.questions(ANN, upload.id) == first
    csv = b"question,gold_sql,evidence\nWhich?,SELECT name FROM product ORDER BY name,tea\nNone?,SELECT 1 WHERE 0,\n"
    uploads.set_questions(ANN, upload.id, csv)
    assert [(record.question.text, record.ordered, record.empty) for record in uploads.records(ANN, upload.id)] == [
        ("Which?", True, False),
        ("None?", False, True),
    ]
