"""The audit: does what is given out for neighbouring tables differ by more than is claimed?

``td.audit`` prices a question, makes up small tables that the policy calls neighbours, lets the mechanism answer them as a
release would, many times, and looks for an event whose probabilities are farther apart than the claimed loss allows
(``events``, ``bounds``). Beside it stands the exact loss of the very rows that carry noise (``losses``). It reads no data
and spends nothing. What it finds is *measured*: a bound from draws, of the tables and events that were tried. It can show
that a claim is false, and never that one is true.

Source: the tests follow Ding, Wang, Wang, Zhang, Kifer 2018 (events from draws) and Bichsel, Steffen, Bogunovic, Vechev 2021
(learned events, Clopper–Pearson bounds).
"""
