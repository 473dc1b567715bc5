"""What a weaker secret buys, and how long it takes to say so: the frontier of a CDF of losses from 0 to 4,356.

    python benchmarks/frontier.py

Every mechanism, seven policies, four ε, the least ε for a ±, from closed forms alone; beside it one plan for every point. The
frontier has to agree with the plans, and to take less than 5 s of one core.
"""

from __future__ import annotations

import sys
import time

import tetraodon as td

THETAS = (1, 10, 50, 100, 500, 1000)
EPSILONS = ("0.1", "0.2", "0.5", "1")
TARGET, MOST = "± 100", 5.0


def main() -> int:
    domain = td.Domain(loss=td.Integer(0, 4356, unit="USD"))
    secrets = {f"within {t}": td.Within(t) for t in THETAS} | {"full": td.Full()}
    policies = {name: td.Policy(domain, s) for name, s in secrets.items()}
    query = td.CDF("loss")

    start = time.process_time()
    found = td.frontier(query, policies, EPSILONS)
    least = found.least(TARGET)
    took = time.process_time() - start

    start, missed = time.process_time(), 0
    table = td.Table({"loss": []}, domain)
    for name, policy in policies.items():
        session = td.Session(table, policy, epsilon=1)
        for epsilon in EPSILONS:
            missed += (
                session.plan(query, epsilon=epsilon)[0].half_width != found.best(name, epsilon).half_width
            )
    planned = time.process_time() - start

    print(found)
    rising = [found.best(name, EPSILONS[-1]).half_width for name in policies]
    missed += rising != sorted(rising)
    print(
        f"least for {TARGET}: {', '.join(f'{name} {float(e):g}' for name, e in least.items() if e is not None)}"
    )
    print(
        f"frontier {took:.1f} s of CPU, {len(policies) * len(EPSILONS)} plans {planned:.1f} s, ratio {planned / took:.1f}"
    )
    return int(missed > 0 or took > MOST)


if __name__ == "__main__":
    sys.exit(main())
