"""What the papers published, for comparison only: most of it breaks the promise it makes. Nothing here is part of the package.

Functions that draw take a ``numpy.random.Generator`` and arrays of counts; they cannot read a table or charge a ledger.
"""
