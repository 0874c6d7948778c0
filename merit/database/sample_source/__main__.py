"""``python -m merit.database.sample_source [folder]``: writes every sample database (default: ``sample_dbs/``)."""

import sys
from pathlib import Path

from merit.database.sample_source.all_samples import write_all

write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[3] / "sample_dbs")
