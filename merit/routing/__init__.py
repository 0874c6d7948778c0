"""The routing bench: one failure tried by hand, the classifier measured on labelled failures, and how failures of
real predictions route.

What this package does not know: the rules themselves (``merit.diagnosis``) and what a page draws.
"""
