"""The paper's worked example (arXiv 2608.07213, Appendix E): one episode and its cards, as the paper prints them."""

from __future__ import annotations

import re

from merit.crystallization.episodes import Episode, Probe, Try

QUESTION = "How many active and closed District Community Day Schools are there in the county of Alpine?"
WRONG = """SELECT COUNT(*) FROM schools WHERE County = 'Alpine'
  AND (StatusType='Active' OR StatusType='Closed')
  AND (GSoffered LIKE '%Community Day School%'
       OR GSserved LIKE '%Community Day School%')"""
FIXED = """SELECT COUNT(*) FROM schools WHERE County = 'Alpine'
  AND (StatusType='Active' OR StatusType='Closed')
  AND (School LIKE '%Community Day%'
       OR DOCType LIKE '%Community Day%')"""
PROBES = (
    Probe(
        "SELECT DISTINCT StatusType, COUNT(*) FROM schools WHERE County='Alpine' GROUP BY StatusType",
        "Active|5\nClosed|11\nMerged|1",
    ),
    Probe("SELECT School, GSoffered, GSserved FROM schools WHERE County='Alpine' LIMIT 20", "Alpine Community Day|K|K"),
)
EPISODE = Episode(
    QUESTION, "", "1", "california_schools", "T3", (Try(WRONG, "0", False), Try(FIXED, "6", True, PROBES)), 1
)
IDENTIFIERS = {
    "schools",
    "School",
    "County",
    "StatusType",
    "DOC",
    "DOCType",
    "GSoffered",
    "GSserved",
    "CDSCode",
    "frpm",
}

CAPSULE = """{"trigger": "Question asks for 'Community Day Schools' but initial SQL filters on 'GSoffered'/'GSserved'.",
 "applicability": "the target school type is identified by name patterns in 'School'/'DOCType', not grade-span columns.",
 "negative_guard": "the type is defined by grade ranges in 'GSoffered'/'GSserved', or the schema lacks those columns.",
 "lesson": "school-type classifications are often stored in the school name or document-type fields, not grade-span columns."}"""  # noqa: E501

_W3 = """
  Past repair (failure mode: value-literal, column-ref):
  Q: How many active and closed District Community Day ...
  - Wrong: ...(GSoffered LIKE ’%Community Day School%’
           OR GSserved LIKE ’%Community Day School%’)
  - Fixed: ...(School LIKE ’%Community Day%’
           OR DOCType LIKE ’%Community Day%’)
  - Clause: WHERE
"""

PRINTED = {
    "W0": """
  Q: How many active and closed District Community Day
     Schools are there in the county of Alpine?
  ‘‘‘sql
  SELECT COUNT(*) FROM schools WHERE County=’Alpine’
   AND (StatusType=’Active’ OR StatusType=’Closed’)
   AND (School LIKE ’%Community Day%’
        OR DOCType LIKE ’%Community Day%’)
  ‘‘‘""",
    "W3": _W3,
    "W3+A": _W3
    + """
  - Final SQL:
  ‘‘‘sql
  SELECT COUNT(*) FROM schools WHERE County=’Alpine’
   AND ... School LIKE ’%Community Day%’ OR DOCType
   LIKE ’%Community Day%’ ...
  ‘‘‘""",
    "W4": _W3
    + """
  - Guard: Apply only when filtering on this column;
    verify the literal actually exists in the column
    first.""",
    "W5": _W3
    + """
  - Trigger: Question asks for ’Community Day Schools’
    but initial SQL filters on ’GSoffered’/’GSserved’.
  - Apply-when: the target school type is identified by
    name patterns in ’School’/’DOCType’, not grade-span
    columns.
  - Do-NOT-apply-when: the type is defined by grade
    ranges in ’GSoffered’/’GSserved’, or the schema
    lacks those columns.
  - Lesson: school-type classifications are often stored
    in the school name or document-type fields, not
    grade-span columns.""",
}
"""As printed, its quotes, breaks and elisions included."""


def normal(text: str) -> str:
    """Without white space, every kind of quote the same."""
    return re.sub(r"\s+", "", text.translate(str.maketrans('’‘`"', "''''")))


def same(printed: str, card: str) -> bool:
    """Equal but for white space, quotes, and what the paper left out at its '...'."""
    pattern = ".*".join(re.escape(piece) for piece in normal(printed).split("..."))
    return re.fullmatch(pattern, normal(card).replace("...", "")) is not None
