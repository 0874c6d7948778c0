"""What one finalised episode leaves behind, and what retrieval says about it. Frozen, no I/O.

What this module does not know: where entries are kept (``store``), which are legal (``legality``) and how
they rank (``ranking``).
"""
