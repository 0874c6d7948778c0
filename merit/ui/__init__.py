"""Drawing: the only part of the library that knows streamlit. Pages call these components and own no colour.

What this package does not know: how an episode comes about. It folds ``merit.events`` and draws the fold.
"""
