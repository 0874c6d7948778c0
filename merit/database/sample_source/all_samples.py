"""The list of sample databases. What it does not know: their tables and questions."""

from __future__ import annotations

from pathlib import Path

from merit.database.sample_source import allotment, campus, clinic, festival, library, shop
from merit.database.sample_source.builder import Sample, write

SAMPLES: tuple[Sample, ...] = (
    allotment.SAMPLE,
    campus.SAMPLE,
    clinic.SAMPLE,
    festival.SAMPLE,
    library.SAMPLE,
    shop.SAMPLE,
)


def write_all(root: Path) -> None:
    """Writes the folder of every sample database below ``root``."""
    for sample in SAMPLES:
        write(sample, root)
