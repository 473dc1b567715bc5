"""Learned channels beside noise, the paper's game and the certified optimum."""
