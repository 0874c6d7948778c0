"""The inputs of the Ask page: database, question, Ask and Stop, and how it shall be asked.

Every choice has a key of ``merit.ui.state``; the URL carries what a colleague needs to see the same.

What this module does not know: what happens after Ask is pressed.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from merit.database import Database
from merit.database.suggestions import suggest_questions
from merit.errors import MeritError, UnknownStrategy
from merit.strategy import STRATEGIES, Scope
from merit.ui import asking, catalogue, notice
from merit.ui.asking import Draft, Expectation, Expected, Judge
from merit.ui.state import Key, Param
from merit.ui.text import count, escape, label, visible

_LONGEST_IN_URL = 500
_SUGGESTED = 3
_SCOPES = {
    Scope.SAME: "This database only",
    Scope.ANY: "Any database",
    Scope.OTHER: "Other databases only",
}
_JUDGES = {
    Judge.SAMPLE: ("The sample answer", "Oracle-assisted: the reference query of this sample question decides."),
    Judge.PERSON: ("I do", "You see the rows and say whether this is what you meant."),
    Judge.CONFIRMED: ("The rows you confirmed", "What you called right in the episode that is compared decides."),
    Judge.ASSERTION: ("An expected result", "You say beforehand what the result must be."),
    Judge.NOBODY: ("Nobody", "The first query that runs is taken; it is never called correct."),
}


def restore(owner: str, page: str = "ask") -> None:
    """Once per visit of ``page``: take from the URL what it says, else what stood on another page with these inputs;
    what cannot be used falls back, with a sentence."""
    state, url = st.session_state, st.query_params
    known = [listed.id for listed in catalogue.all_of(owner)]
    # Streamlit drops what another page's widgets held, so a change of page begins anew.
    moved = state.get(Key.INPUTS_OF, page) != page
    state[Key.INPUTS_OF] = page
    if state.get(Param.DATABASE) in known and not moved:
        return
    wanted = url.get(Param.DATABASE) or state.get(Param.DATABASE) or state.get(Key.LAST_DATABASE, "")
    if not moved:
        wanted = state.get(Param.DATABASE) or wanted
    state[Param.DATABASE] = wanted if wanted in known else catalogue.FIRST
    if wanted and wanted not in known:
        notice.keep(catalogue.not_here(wanted))
    carried = state.get(Param.QUESTION, "") if moved and Param.DATABASE not in url else ""
    state[Param.QUESTION] = url.get(Param.QUESTION, carried)
    base, scope = "merit", Scope.SAME
    try:
        base, scope = asking.from_name(url.get(Param.STRATEGY, "same_database"))
    except UnknownStrategy as error:
        notice.keep(str(error))
    state[Param.STRATEGY], state[Key.SCOPE] = base, scope
    state[Key.BUDGET] = 7
    state[Key.EVIDENCE] = ""
    found = asking.sample(state[Param.QUESTION], state[Param.DATABASE], owner)
    state[Key.JUDGE] = Judge.SAMPLE if found else Judge.PERSON
    if found:
        state[Key.EVIDENCE] = found.evidence


def publish(draft: Draft, episode_id: str | None, keep: tuple[Param, ...] = ()) -> None:
    """Put into the URL what leads back here; parameters that say nothing new are left out, those of ``keep`` stay."""
    values = {
        Param.DATABASE: draft.database_id,
        Param.QUESTION: draft.text if 0 < len(draft.text) <= _LONGEST_IN_URL else "",
        Param.STRATEGY: draft.strategy.name if draft.strategy.name != "same_database" else "",
        Param.EPISODE: episode_id or "",
    }
    for name, value in values.items():
        if name in keep:
            continue
        if value and st.query_params.get(name) != value:
            st.query_params[name] = value
        elif not value and name in st.query_params:
            del st.query_params[name]


def database(owner: str) -> Database | None:
    """The database picker; None where the file of the chosen one cannot be used (the reason is drawn)."""
    titles = {listed.id: listed.title for listed in catalogue.all_of(owner)}
    picked = st.selectbox(
        "Database",
        list(titles),
        format_func=lambda id: visible(titles.get(id, "")),
        key=Param.DATABASE,
        on_change=_clear_question,
    )
    st.session_state[Key.LAST_DATABASE] = picked
    try:
        found = asking.open_database(picked, owner)
    except MeritError as error:
        notice.say(str(error))
        return None
    for problem in found.problems:
        notice.say(problem, urgent=False)
    return found


def _clear_question() -> None:
    st.session_state[Param.QUESTION] = ""
    st.session_state[Key.EVIDENCE] = ""


def _schema(database: Database, description: str) -> None:
    """What can be asked about: the tables and the schema as the model sees it."""
    with st.popover(f"{count(len(database.tables), 'table')}", type="tertiary", icon=":material/table:"):
        if description:
            st.text(description)
        st.code(visible(database.schema("listing")), language=None, height=360)


def question(running: bool, verb: str = "Ask") -> tuple[bool, bool]:
    """The question box with Ask and Stop beside it, which never move; (Ask pressed, Stop pressed). ``verb``: the word
    that stands on the first."""
    with st.container(key="question-box"):
        box, buttons = st.columns([9, 2], vertical_alignment="bottom")
        box.text_area(
            "Question",
            key=Param.QUESTION,
            height=84,
            placeholder="Ask something about this database in your own words",
            on_change=_typed,
        )
        with buttons:
            asked = st.button(verb, type="primary", key=Key.ASK, disabled=running, width="stretch")
            stopped = st.button("Stop", key=Key.STOP, disabled=not running, width="stretch")
    return asked, stopped


def _typed() -> None:
    """A typed question that is a sample question word for word is judged by its sample answer, as if it was picked."""
    state = st.session_state
    found = asking.sample(state[Param.QUESTION], state[Param.DATABASE], state[Key.OWNER])
    if found is not None:
        _take(state[Param.QUESTION], found.evidence)


def samples_to_try(database_id: str, database: Database | None, owner: str) -> None:
    """Three questions to press, of those with an answer if there are any, and all of them to pick from."""
    first = catalogue.first(database_id, owner)
    levels = catalogue.levels(database_id, owner)
    suggested = suggest_questions(database, _SUGGESTED) if database is not None and not first else []
    with st.container(horizontal=True, vertical_alignment="center", key="try", gap="small"):
        st.html('<span class="m-soft">Try</span>', width="content")
        for number, (text, evidence, judge) in enumerate(
            [(question.text, question.evidence, Judge.SAMPLE) for question in first]
            + [(text, "", Judge.PERSON) for text in suggested]
        ):
            st.button(
                f"“{label(text, 70)}”",
                key=f"try-{database_id}-{number}",
                type="tertiary",
                on_click=_take,
                args=(text, evidence, judge),
            )
        if not levels:
            return
        with st.popover(f"All {len(levels)}", type="tertiary"):
            st.selectbox(
                "Questions with an answer",
                list(levels),
                index=None,
                format_func=lambda text: visible(f"{text}  ({levels[text]})" if levels[text] else text),
                key=f"{Key.SAMPLE}-{database_id}",
                placeholder="Type to search",
                on_change=_take_picked,
                args=(database_id,),
            )


def _take(text: str, evidence: str, judge: Judge = Judge.SAMPLE) -> None:
    state = st.session_state
    state[Param.QUESTION], state[Key.EVIDENCE], state[Key.JUDGE] = text, evidence, judge


def _take_picked(database_id: str) -> None:
    text = st.session_state[f"{Key.SAMPLE}-{database_id}"]
    found = asking.sample(text or "", database_id, st.session_state[Key.OWNER])
    if found is not None:
        _take(found.text, found.evidence)


ASKED = (Judge.SAMPLE, Judge.PERSON, Judge.ASSERTION, Judge.NOBODY)
"""Who can judge one question that is asked."""


def options(
    database_id: str,
    database: Database | None,
    owner: str,
    offered: Sequence[Judge] = ASKED,
    one_strategy: bool = True,
) -> Draft:
    """Hint, strategy, budget and judge, each folded behind a word that tells the choice; the draft of them all.
    ``offered``: who may judge; ``one_strategy``: whether the strategy is chosen here."""
    state = st.session_state
    known = asking.sample(state[Param.QUESTION], database_id, owner) is not None
    judges = [judge for judge in offered if known or judge is not Judge.SAMPLE]
    if state[Key.JUDGE] not in judges:
        state[Key.JUDGE] = Judge.PERSON if Judge.PERSON in judges else judges[0]
    with st.container(horizontal=True, vertical_alignment="center", key="options", gap="small"):
        with st.popover(f"Hint: {'given' if state[Key.EVIDENCE].strip() else 'none'}", type="tertiary", key="hint"):
            st.text_area("Hint for the model", key=Key.EVIDENCE, height=96, help=_HINT_HELP)
        if one_strategy:
            strategy = asking.strategy(state[Param.STRATEGY], Scope(state[Key.SCOPE]))
            with st.popover(f"Strategy: {strategy_word(strategy.name)}", type="tertiary", key="strategy-box"):
                _strategy()
        with st.popover(f"Repairs: up to {state[Key.BUDGET]}", type="tertiary", key="repairs"):
            st.slider(
                "Most repairs", 0, 7, key=Key.BUDGET, help="With 0 the first answer stands and nothing is stored."
            )
        judge = Judge(state[Key.JUDGE])
        own = catalogue.stream(database_id, owner) != catalogue.SHARED
        title = _judge_words(judge, own)[0]
        word = title if title.startswith("I ") else title[0].lower() + title[1:]
        with st.popover(f"Who judges: {word}", type="tertiary", key="judges"):
            expectation = _judges(judges, own)
        if judge is Judge.SAMPLE:
            st.html(f'<span class="m-oracle" title="{escape(ORACLE)}">oracle-assisted</span>', width="content")
        if database is not None:
            _schema(database, catalogue.find(database_id, owner).description)
    strategy = STRATEGIES["same_database"]
    if one_strategy:
        strategy = asking.strategy(state[Param.STRATEGY], Scope(state[Key.SCOPE]))
    return Draft(
        state[Param.QUESTION],
        state[Key.EVIDENCE],
        database_id,
        strategy,
        state[Key.BUDGET],
        Judge(state[Key.JUDGE]),
        expectation,
    )


ORACLE = "The reference answer tells whether an attempt is right. This is not autonomous correction."
_OWN_JUDGE = ("Your SQL for it", "Oracle-assisted: the SQL you brought for this question decides.")
_HINT_HELP = "Knowledge the schema does not hold, such as “a late loan is one returned after its due date”."


def strategy_word(name: str) -> str:
    """A strategy in a few words, with the databases whose entries it recalls."""
    words = {
        "merit": "MERIT, any database",
        "same_database": "MERIT, this database",
        "cross_database": "MERIT, other databases",
    }
    return words.get(name, STRATEGIES[name].title)


def _strategy() -> None:
    st.radio(
        "Strategy",
        asking.LIVE_STRATEGIES,
        format_func=lambda name: STRATEGIES[name].title,
        captions=[STRATEGIES[name].description for name in asking.LIVE_STRATEGIES],
        key=Param.STRATEGY,
    )
    st.radio(
        "Memory from",
        list(_SCOPES),
        format_func=_SCOPES.__getitem__,
        key=Key.SCOPE,
        disabled=not STRATEGIES[st.session_state[Param.STRATEGY]].uses_memory,
        help="Entries carry values of the database they come from; this database only keeps them where they belong.",
    )


def _judge_words(judge: Judge, own: bool) -> tuple[str, str]:
    """Title and description of a judge; ``own``: the questions with an answer are those the person brought."""
    return _OWN_JUDGE if own and judge is Judge.SAMPLE else _JUDGES[judge]


def _judges(judges: list[Judge], own: bool) -> Expectation:
    st.radio(
        "Who judges",
        judges,
        format_func=lambda judge: _judge_words(judge, own)[0],
        captions=[_judge_words(judge, own)[1] for judge in judges],
        key=Key.JUDGE,
    )
    if st.session_state[Key.JUDGE] != Judge.ASSERTION:
        return Expectation()
    kind = st.selectbox("The result has", list(Expected), key=Key.EXPECTED_KIND, format_func=_expected_word)
    if kind is Expected.COUNT:
        return Expectation(kind, count=st.number_input("Number of rows", 0, 1_000_000, 1, key=Key.EXPECTED_COUNT))
    if kind is Expected.VALUE:
        return Expectation(kind, value=st.text_input("The one value", key=Key.EXPECTED_VALUE))
    if kind is Expected.ROWS:
        help_text = "One row a line with commas between the values, or a JSON list of lists. Their order is free."
        return Expectation(kind, rows=st.text_area("Rows", key=Key.EXPECTED_ROWS, help=help_text))
    help_text = "An SQL expression over the columns of the result, such as price > 0 or count(*) = 3."
    return Expectation(
        Expected.CONDITION, condition=st.text_input("Condition", key=Key.EXPECTED_CONDITION, help=help_text)
    )


def _expected_word(kind: Expected) -> str:
    words = {Expected.COUNT: "a number of rows", Expected.VALUE: "one value", Expected.ROWS: "these rows"}
    return words.get(kind, "a condition that holds")
