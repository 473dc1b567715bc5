"""Whole rows: the private column generalised, the other columns exchanged within groups, least leakage for a stated distortion."""
