"""Names of everything kept in the session and in the URL; pages, components and tests use the same enums.

What this module does not know: what the values mean.
"""

from __future__ import annotations

from enum import StrEnum


class Param(StrEnum):
    """URL parameters (contract: Places). Those bound to a widget are its key as well."""

    DATABASE = "database"
    QUESTION = "question"
    STRATEGY = "strategy"
    EPISODE = "episode"
    POSITION = "position"
    ENTRY = "entry"
    SECTION = "section"


class Key(StrEnum):
    """Keys of widgets and session values."""

    ENTERED = "entered"
    OWNER = "owner"
    JOB = "job"
    NOTICE = "notice"
    EVIDENCE = "evidence"
    BUDGET = "budget"
    JUDGE = "judge"
    SAMPLE = "sample"
    SCOPE = "scope"
    ASK = "ask"
    STOP = "stop"
    RETRY = "retry"
    YES = "yes"
    NO = "no"
    STOP_JUDGING = "stop_judging"
    UNDO = "undo"
    SHARE = "share"
    SHOW_CODE = "show_code"
    SAVE_AGAIN = "save_again"
    EDIT_SQL = "edit_sql"
    EDIT_RUN = "edit_run"
    EDIT_CONFIRM = "edit_confirm"
    EDIT_RESULT = "edit_result"
    EXPECTED_KIND = "expected_kind"
    EXPECTED_COUNT = "expected_count"
    EXPECTED_VALUE = "expected_value"
    EXPECTED_ROWS = "expected_rows"
    EXPECTED_CONDITION = "expected_condition"
    LAST_DATABASE = "last_database"
    PICKED = "picked"
    WANTED = "wanted"
    ASK_ABOUT = "ask_about"
    TABLE = "table"
    AROUND = "around"
    DATABASE_TABS = "database_tabs"
    UPLOAD = "upload"
    UPLOAD_TURN = "upload_turn"
    UPLOAD_SAID = "upload_said"
    UPLOAD_AGREE = "upload_agree"
    UPLOAD_LEAVE = "upload_leave"
    UPLOAD_HEADER = "upload_header"
    STAGED = "staged"
    REMOVE = "remove"
    REMOVE_SURE = "remove_sure"
    OWN_QUESTIONS = "own_questions"
    OWN_QUESTIONS_TURN = "own_questions_turn"
    OWN_QUESTIONS_SAID = "own_questions_said"
    WHOSE = "whose"
    FOLLOW = "follow"
    PLAY = "play"
    PLAYING = "playing"
    ENTRY_TABS = "entry_tabs"
    FIND = "find"
    POLARITY = "polarity"
    TYPES = "types"
    FROM = "from"
    SPAN = "span"
    ORDER = "order"
    PAGE = "page"
    PAGE_SIZE = "page_size"
    ENTRIES = "entries"
    LASSO = "lasso"
    CHOSEN_ENTRY = "chosen_entry"


def step_key(episode_id: str, iteration: int, part: str = "step") -> str:
    """The key of one part of one step, unique over episodes."""
    return f"{part}-{episode_id[:12]}-{iteration}"
