"""The deterministic scripts that write ``sample_dbs/``: ``python -m merit.database.sample_source [folder]``.

One package module per field of life gives tables and rows; its neighbour in ``asked/`` gives the questions.
What this package does not know: how the product reads them (``merit.database.samples``).
"""
