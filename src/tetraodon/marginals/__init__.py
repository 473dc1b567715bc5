"""Several tables at once under one charge, consistent with each other: ``Marginals``."""
