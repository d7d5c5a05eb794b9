"""One module for each annotation that is a strategy, and the table of all annotations.

Covers: decoding. Does not cover: what a policy makes of it.

Rules:
1. ``decode(text, problems)`` returns a value of ``model.wishes``; ``ValueError`` means that nothing
   of the text can be used. Fields that do not fit are left out, with a problem each.
2. Pure: the same text always says the same.
"""
