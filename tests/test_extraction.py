"""One statement out of whatever a model wrote: text in, text out. Easy to add to."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit.answer_regions import drop_reasoning
from merit.prompts import extract_sql

Q = "SELECT name FROM crew WHERE age > 35"

SHAPES = {
    "bare": (Q, Q),
    "semicolon": (Q + ";", Q),
    "semicolons and blanks": (f"  {Q} ;\n;; ", Q),
    "comment after the semicolon": (Q + "; -- all of them", Q),
    "tags": (f"<answer>{Q}</answer>", Q),
    "tags and semicolon": (f"<answer>\n{Q};\n</answer>", Q),
    "tags in capitals": (f"<ANSWER>{Q}</ANSWER>", Q),
    "tag with an attribute": (f'<answer lang="sql">{Q}</answer>', Q),
    "unclosed tag": (f"The query: <answer>{Q}", Q),
    "closing tag only": (f"{Q}</answer>", Q),
    "first of two tags": (f"<answer>{Q}</answer> or <answer>SELECT 2</answer>", Q),
    "tags named in prose first": (f"I put it between <answer> and </answer> tags: <answer>{Q}</answer>", Q),
    "opening tag named in prose": (f"After <answer> comes it. <answer>{Q}</answer>", Q),
    "empty tags, then SQL": (f"<answer></answer>\n```sql\n{Q}\n```", Q),
    "tags with prose, fence before": (f"```sql\n{Q}\n```\n<answer>The query is above.</answer>", Q),
    "tags with prose and SQL": (f"<answer>The query is: {Q}</answer>", Q),
    "tags with trailing prose": (f"<answer>{Q}\n\nThis lists the older crew.</answer>", Q),
    "tags with a label": (f"<answer>SQL: {Q}</answer>", Q),
    "tags with quotes": (f'<answer>"{Q}"</answer>', Q),
    "tags with inline code": (f"<answer>`{Q}`</answer>", Q),
    "fence": (f"```sql\n{Q}\n```", Q),
    "fence, one line": (f"```sql {Q};```", Q),
    "fence, no language, one line": (f"```{Q}```", Q),
    "fence, glued language": (f"```sql{Q}```", Q),
    "fence, glued end": (f"```sql\n{Q}```", Q),
    "fence, other dialect": (f"```postgresql\n{Q}\n```", Q),
    "fence, sqlite3": (f"```sqlite3\n{Q}\n```", Q),
    "fence, unknown language": (f"```query\n{Q}\n```", Q),
    "fence, four backticks": (f"````sql\n{Q}\n````", Q),
    "fence glued to a quoted name": ("```SELECT name FROM `crew````", "SELECT name FROM `crew`"),
    "fence of tildes": (f"~~~sql\n{Q}\n~~~", Q),
    "fence, unclosed": (f"Here:\n```sql\n{Q}", Q),
    "fence in tags": (f"<answer>\n```sql\n{Q};\n```\n</answer>", Q),
    "tags in a fence": (f"```sql\n<answer>{Q}</answer>\n```", Q),
    "fence with carriage returns": ("```sql\r\nSELECT name\r\nFROM crew\r\n```\r\n", "SELECT name\r\nFROM crew"),
    "first of two fences": (f"```sql\n{Q}\n```\nor\n```sql\nSELECT 2\n```", Q),
    "fence of text first": (f"```text\nname age\n```\n```sql\n{Q}\n```", Q),
    "fence of Python first": (f"```python\nprint('SELECT 1')\n```\n```sql\n{Q}\n```", Q),
    "empty fence first": (f"```sql\n```\n```sql\n{Q}\n```", Q),
    "fence and explanation with SQL words": (f"```sql\n{Q}\n```\nWe select from crew with a condition.", Q),
    "fence with a comment first": (f"```sql\n-- select all names with care\n{Q}\n```", Q),
    "fence with a block comment first": (f"```sql\n/* select;\n with */\n{Q}\n```", Q),
    "bare word sql": (f"sql\n{Q};", Q),
    "SQL label": (f"SQL: {Q}", Q),
    "SQLQuery label": (f"Question: who?\nSQLQuery: {Q}", Q),
    "label in bold": (f"**SQL query:** {Q}", Q),
    "numbered": (f"1. {Q}", Q),
    "prose, colon, SQL": (f"Sure, here is the selected query with care: {Q}", Q),
    "prose above": (f"The selection withholds nothing.\n\n{Q}", Q),
    "prose below": (f"{Q}\n\nThis query selects the names of the older crew.", Q),
    "prose below, no blank line": (f"{Q}\nThis query gives their names.", Q),
    "table below": (f"{Q}\n\n| name |\n|---|\n| Ana |", Q),
    "rule below": (f"{Q}\n---\nThe above is it", Q),
    "Japanese around it": (f"答えは次の通りです：{Q}。", Q),
    "label below": (f"{Q}\nExplanation: names; ages", Q),
    "prose with an apostrophe below": (f"{Q}\n\nThat's all; it doesn't need more.", Q),
    "prose after the semicolon": (f"{Q}; this gives the older crew.", Q),
    "select in the prose after the semicolon": (f"{Q};\nHere we select the names with a filter.", Q),
    "with pleasure": (f"With pleasure: {Q}", Q),
    "with pleasure, no colon": (f"With pleasure!\n{Q}", Q),
    "in a sentence": (f"You can run {Q} for that.", Q),
    "in inline code": (f"You can run `{Q}` for that.", Q),
    "in inline code with quoted names": ("Use `SELECT `name` FROM crew`.", "SELECT `name` FROM crew"),
    "at the end of a sentence": (f"The query is {Q}.", Q),
    "in quotes": (f'The query is "{Q}".', Q),
    "in bold": (f"**{Q}**", Q),
    "in brackets": (f"As asked ({Q}).", Q),
    "JSON": (json.dumps({"sql": Q}), Q),
    "JSON, other key": (json.dumps({"thought": "select it", "final_query": Q + ";"}), Q),
    "JSON in a fence": (f"```json\n{json.dumps({'query': Q})}\n```", Q),
    "JSON with line breaks": (json.dumps({"sql": "SELECT name\nFROM crew"}), "SELECT name\nFROM crew"),
    "turn label": (f"{Q}\nHuman: and now the others?", Q),
    "turn label of the assistant": (f"{Q}\n\nAssistant: SELECT 2", Q),
    "end token": (f"{Q}<|im_end|>", Q),
    "think": (f"<think>\n```sql\nSELECT 1\n```\n</think>\n{Q}", Q),
    "think without its start": (f"Maybe SELECT 1; no.\n</think>\n\n{Q}", Q),
    "think twice": (f"<think>SELECT 1</think><think>SELECT 2</think>{Q}", Q),
    "think nested": (f"<think>a <think>SELECT 1</think> SELECT 2</think>{Q}", Q),
    "think, one end too few": (f"<think>a <think> SELECT 1</think>{Q}", Q),
    "think, one end too many": (f"<think>I end with </think> later. SELECT 1 </think> {Q}", Q),
    "think, then a lone end": (f"SELECT 1 <think>a</think> no </think> {Q}", Q),
    "tag begun again": (f"<answer>{Q} <answer>SELECT 1</answer>", Q),
    "think after the answer": (f"{Q}\n<think>SELECT 1 would be wrong</think>", Q),
    "think with an answer in it": (f"<think><answer>SELECT 1</answer></think><answer>{Q}</answer>", Q),
    "think in capitals": (f"<THINK>SELECT 1</THINK>{Q}", Q),
    "thinking": (f"<thinking>SELECT 1</thinking>{Q}", Q),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_statement_is_found_in_every_wrapping(shape: str) -> None:
    text, expected = SHAPES[shape]
    assert extract_sql(text) == expected


AS_WRITTEN = [
    'SELECT `name` FROM [crew list] WHERE "age" > 3',
    "select  name\n\tfrom crew   where 1=1",
    "SELECT name, FROM crew",
    "SELECT 'a;b' FROM crew",
    'SELECT "a;b" FROM crew',
    "SELECT name FROM crew -- not ; the end\nWHERE age > 3",
    "SELECT /* one; two */ name FROM crew",
    "WITH old AS (SELECT * FROM crew WHERE age > 60) SELECT name FROM old",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT i FROM n",
    "with a as materialized (select 1), b as (select 2) select * from a, b",
    "SELECT name FROM crew WHERE name = 'O''Brien'",
    "SELECT name FROM crew WHERE note LIKE '%</think>%'",
    "SELECT name FROM crew WHERE note = '<|end|>' AND age > 3",
    "SELECT name FROM crew WHERE age &gt; 35",
    "SELECT CASE WHEN age < 35 THEN 'within' ELSE 'with' END AS band FROM crew",
    "SELECT name\n\nFROM crew\n\nWHERE age > 3",
    "SELECT name FROM crew WHERE 名前 = 'é' -- 日本語",
    "SELECT name FROM crew WHERE name = 'the one that selects; with this'",
    "SELECT",
    "SELECT name FROM crew WHERE",
    "SELECT name, count(*)\nFROM crew\nWHERE (age >",
    "SELECT name\nFROM crew\nJOIN boat ON crew.",
    "SELECT name FROM crew WHERE name = 'An",
    "SELECT name FROM (SELECT * FROM crew",
    "SELECT count(* AS n,\n  age\nFROM crew",
    "WITH old AS (SELECT * FROM crew",
    "WITH old",
    "SELECT TOP 5 name FROM crew",
    "SELECT name::text FROM crew",
    "SELECT name FROM crew FETCH FIRST 3 ROWS ONLY",
    "SELECT name FROM crew WHERE age = ?",
    "SELECT '\ud800'",
    "SELECT 'a\0b'",
    "DELETE FROM crew WHERE id IN (SELECT id FROM old)",
    "INSERT INTO crew SELECT * FROM old",
    "UPDATE crew SET age = 3",
    "DROP TABLE crew",
    "CREATE TABLE x AS SELECT 1",
    "PRAGMA table_info(crew)",
    "VALUES (1), (2)",
]


@pytest.mark.parametrize("sql", AS_WRITTEN)
@pytest.mark.parametrize("wrap", ["<answer>{}</answer>", "```sql\n{}\n```", "<answer>\n```\n{}\n```\n</answer>"])
def test_what_is_marked_as_sql_is_kept_as_written(sql: str, wrap: str) -> None:
    """A parser mended some statements and refused others; cut ones lost their last line."""
    assert extract_sql(wrap.format(sql)) == sql


CUT = [sql for sql in AS_WRITTEN if sql not in ("SELECT", "WITH old", "SELECT name FROM crew WHERE age &gt; 35")]


@pytest.mark.parametrize("sql", [sql for sql in CUT if " FROM" in sql or "\nFROM" in sql or "from" in sql])
def test_it_is_kept_without_any_mark_too(sql: str) -> None:
    assert extract_sql(sql) == sql
    assert extract_sql(f"Here is the query:\n{sql}") == sql


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        ";",
        "I do not know.",
        "The unselected users are outside the scope of notwithstanding clauses.",
        "You should select the name from the crew table.",
        "Please select one of the options.",
        "To answer, we select names from crew.",
        "With this schema the question has no answer.",
        "With crew as the table, nothing is selected.",
        "Select the oldest person from the crew, with care.",
        "SELECT is the word that I would use.",
        "<answer>I cannot answer this with the given tables.</answer>",
        "<answer></answer>",
        "<answer>Select the users over 35</answer>",
        "```sql\n```",
        "```sql\n-- no answer\n```",
        "```\nThe selected rows.\n```",
        "<think>SELECT name FROM crew",
        "<think>SELECT name FROM crew</think>",
        "SELECT name FROM crew</think>",
        "Update the list of names, then delete from it.",
        "-- SELECT name FROM crew",
        "/* SELECT name FROM crew */",
        '{"sql": 3}',
        '{"answer": "I do not know"}',
    ],
)
def test_prose_is_no_sql(text: str) -> None:
    assert extract_sql(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1;\nSELECT 2;\n",
        f"<answer>{Q}; DROP TABLE crew</answer>",
        f"```sql\n{Q};\n\n{Q};\n```",
        f"```sql\n{Q};\n-- or\nWITH x AS (SELECT 1) SELECT * FROM x\n```",
        "CREATE TEMP TABLE x AS SELECT 1; SELECT * FROM x",
        f"{Q};\nAlternatively:\nSELECT 2;",
        f"<answer>{Q}; SELECT 2</answer> <answer>{Q}</answer>",
    ],
)
def test_two_statements_are_no_answer(text: str) -> None:
    assert extract_sql(text) == ""
    assert extract_sql(text, "published") == ""


PUBLISHED = [
    (f"<answer>{Q};</answer>", Q),
    (f"{Q};; -- end", Q),
    (f"```sql\n{Q}\n```", Q),
    (f"```{Q}```", Q),
    (f"<think>```sql\nSELECT 1\n```</think>\n```sql\n{Q}\n```", "SELECT 1"),
    (f"With pleasure: {Q}", f"With pleasure: {Q}"),
    (f"the selected: {Q}\nThis is it", f"{Q}\nThis is it"),
    (f"{Q}; this is it", ""),
    ("I do not know.", "I do not know."),
    (f"{Q}</answer> more", Q),
    (f"{Q}\nHuman: next", Q),
    (f"{Q} \n \n  Assistant : next", Q),
    ("SELECT 'a;b'", "SELECT 'a;b'"),
    (f"<answer>{Q}", Q + ""),
    (f"```sql\n{Q}", Q + ""),
    (f"```sqlite\n{Q}\n```", Q),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), PUBLISHED)
def test_the_published_rule_is_kept_by_name(text: str, expected: str) -> None:
    assert extract_sql(text, "published") == expected


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="product or published"):
        extract_sql(Q, "strict")


@given(st.text() | st.lists(st.sampled_from(
    ["<answer>", "</answer>", "```", "```sql\n", "~~~", "SELECT ", "WITH ", "x", "'", '"', "`", "(", ")", ";", "\n",
     "<think>", "</think>", "{", "}", '"sql": ', "--", "/*", "*/", "[", "Human:", " the ", ",", "FROM t ", "; "]
)).map("".join))  # fmt: skip
def test_whatever_comes_is_survived_and_nothing_is_invented(text: str) -> None:
    for mode in ("product", "published"):
        sql = extract_sql(text, mode)
        assert sql == sql.strip()
        assert sql in drop_reasoning(text) or sql in text or "\\" in text


@pytest.mark.parametrize("mode", ["product", "published"])
@pytest.mark.parametrize(
    "piece",
    ["SELECT ", "WITH ", "<answer>", "</answer>", "```", "``` ", "<think>", "</think>", "'", "[", "(", "/*", "*", "{",
     '{"a":', "\n", " ", "\n Human", ";", "SELECT 1;", "a", "SELECT 'x", "`SELECT ", "<answer>SELECT ", "-- \n",
     "/* SELECT ", "the ", "```sql\nSELECT 1,", "WITH a(", "x AS (", "\nSELECT the", "\nThis is it: "],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str, mode: str) -> None:
    """A confused model repeats itself until it is stopped; some patterns took minutes on that."""
    started = time.perf_counter()
    extract_sql(piece * (1_000_000 // len(piece)), mode)
    extract_sql("SELECT " + piece * (300_000 // len(piece)), mode)
    assert time.perf_counter() - started < 8


@pytest.mark.parametrize("piece", ["SELECT ", "-- \n", "\nSELECT the", ";"])
def test_so_are_five_megabytes(piece: str) -> None:
    started = time.perf_counter()
    extract_sql(piece * (5_000_000 // len(piece)))
    assert time.perf_counter() - started < 20


def test_a_long_statement_survives() -> None:
    sql = "SELECT name FROM crew WHERE id IN (" + ", ".join(str(i) for i in range(100_000)) + ")"
    assert extract_sql(f"<answer>{sql};</answer>") == sql
    assert extract_sql(sql) == sql


@pytest.mark.parametrize(
    "cut",
    ["SELECT name FROM users WHERE note LIKE '%with the", "SELECT 'the first of", 'SELECT "first', "SELECT a, `b c"],
)
@pytest.mark.parametrize("form", ["{}", "SQL: {}", "The query gives the names.\n\n{}", "```sql\n{}", "<answer>{}"])
def test_an_answer_cut_inside_a_literal_is_kept_as_it_is(cut: str, form: str) -> None:
    """Words of English inside a literal that the token limit cut off counted as prose, and the answer became empty:
    the model was told of an empty query where the database says "unrecognized token"."""
    assert extract_sql(form.format(cut)) == cut


@pytest.mark.parametrize("text", ["Select users' names", "SELECT users' names only", 'It says "select the best'])
def test_an_apostrophe_or_open_quotation_in_prose_makes_no_statement(text: str) -> None:
    assert extract_sql(text) == ""
