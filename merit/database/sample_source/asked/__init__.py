"""What people ask of the sample databases, with the gold answers: one module per database.

Rules of these lists: no alias with AS except where a table is joined with itself; ORDER BY only where the question
asks for an order or a top, and then without ties that would leave the answer open; values spelled as in the data.
"""
