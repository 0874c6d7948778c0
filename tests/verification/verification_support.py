"""A small database for the verifiers' tests, written anew for each."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from merit.database import Database
from merit.episode import Question

BOATS = """
CREATE TABLE boat(no INTEGER PRIMARY KEY, name TEXT, dock TEXT, length INTEGER, draught REAL, code TEXT, value REAL);
INSERT INTO boat VALUES (1,'Elsa','north',12,12.0,'12',5), (2,'Fram','north',9,9.0,'09',7),
                        (3,'Gro','south',9,1.5,NULL,9), (4,'Elsa','south',30,2.5,'> =',11);
"""

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def make(path: Path, script: str = BOATS) -> Database:
    """The database that ``script`` writes to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return Database.open(path)


def asks(gold: str | None) -> Question:
    """Any question with this gold query."""
    return Question("How many?", "boats", gold_sql=gold)
