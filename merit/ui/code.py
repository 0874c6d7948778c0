"""One step of an episode as a few lines of Python that do it again with the library: run, diagnose, recall.

What this module does not know: streamlit, and gold.
"""

from __future__ import annotations

from merit.database import samples
from merit.diagnosis import FAILURES
from merit.episode import Status
from merit.story import Step, Story


def snippet(story: Story, step: Step) -> str:
    """Lines that run as they stand from the folder of the program; all text in them is quoted as Python quotes it."""
    if story.started is None or step.attempt is None:
        return ""
    started = story.started
    id = started.question.database_id
    place = f"sample_dbs/{id}/{id}.sqlite" if id in samples.ids() else "path/to/the/database.sqlite"
    lines = ["import merit", "", f"database = merit.Database.open({place!r}, id={id!r})"]
    if step.retrieved is not None:
        lines += ["", *_recall(story, step)]
    if step.attempt.sql:
        lines += ["", f"execution = database.execute({step.attempt.sql!r})", "print(execution.columns, execution.rows)"]
    if step.judged is not None and step.judged.outcome in FAILURES:
        ran = step.executed is not None and step.executed.status is Status.EXECUTED
        message = step.diagnosed.message if step.diagnosed is not None else ""
        told = "execution.error" if step.attempt.sql and not ran else repr(message or None)
        note = f"  # {step.judged.by or 'nobody'} judged so" if ran else ""
        lines += ["", f"diagnosis = merit.diagnose({str(step.judged.outcome)!r}, {told}){note}", "print(diagnosis)"]
    return "\n".join(lines) + "\n"


def _recall(story: Story, step: Step) -> list[str]:
    """What memory was asked for this step."""
    assert story.started is not None
    started, failed = story.started, story.failure_before(step)
    if failed is None or failed.attempt is None or failed.judged is None or failed.diagnosed is None:
        return []
    message = failed.diagnosed.message or None
    return [
        "from dataclasses import replace",
        "from merit.memory.entry import failure_context",
        "from merit.models import load_encoder",
        "from merit.settings import settings",
        "",
        f"failed = {failed.attempt.sql!r}",
        "query = merit.RetrievalQuery(",
        f"    {started.question.text!r}, failed,",
        f"    failure_context(failed, {str(failed.judged.outcome)!r}, {message!r}),",
        f"    {str(failed.diagnosed.failure_type)!r}, {started.question.id!r}, {started.question.database_id!r},",
        f"    position={started.position}, iteration={step.iteration},",
        ")",
        "store = merit.MemoryStore.open(settings().memory_uri, load_encoder())",
        f"strategy = replace(merit.STRATEGIES[{started.strategy!r}], scope={started.scope!r})",
        "recalled = store.retrieve(query, strategy)",
        "print([entry.delta for entry in (*recalled.positive, *recalled.negative)])",
    ]
