"""Several processes that charge one ledger at the same time: ``python together.py LEDGER TOTAL PROCESSES CHARGES``.

Prints how many charges of 1/1000 each process was granted. They are forked once everything is loaded, and begin together.
"""

from __future__ import annotations

import os
import sys
from fractions import Fraction

from tetraodon.errors import BudgetError
from tetraodon.ledger import Charge, Ledger
from tetraodon.loss import Loss

PRICE = Fraction(1, 1000)


def opened(where: str, total: str) -> Ledger:
    told = {"data": "tax", "domain_hash": "d", "policy": {"secrets": "full"}, "policy_hash": "p"}
    return Ledger.open(where, **told, total=Loss("epsilon", Fraction(total)))  # type: ignore[arg-type]


def charge(name: str) -> Charge:
    return Charge(name, "2025", Loss("epsilon", PRICE), {"cdf": "income"}, "ordered", "", {}, "p")


def spend(where: str, total: str, worker: int, charges: int) -> int:
    """How many charges were granted; the ledger is opened here, and made by whoever is first."""
    ledger, granted = opened(where, total), 0
    for i in range(charges):
        try:
            ledger.charge(charge(f"{worker}-{i}"))
            granted += 1
        except BudgetError:
            pass
    return granted


def main(where: str, total: str, processes: int, charges: int) -> None:
    readers = []
    held, go = os.pipe()
    for worker in range(processes):
        back, out = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                os.close(go)
                os.read(held, 1)  # ends when the parent lets go
                os.write(out, str(spend(where, total, worker, charges)).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(out)
        readers.append(back)
    os.close(go)
    granted = [os.read(each, 20).decode() for each in readers]
    print(*(each or "failed" for each in granted))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
