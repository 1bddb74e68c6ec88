"""Is the bill of a run the least possible, by the rules and prices of four vendors?

    python experiments/bench/cache_control.py [--quick]

Runs 1, 2, 5 and 20 reads of each of 12 documents of 20,000 tokens (3 with --quick) by plans of up to five
steps, 8 calls at once, against a server on loopback that caches and bills as a vendor does, on a computed
clock: calls take 20 s. Compared are the bill, that of the same requests at the same times without cache
control, and the least, by trying every choice of marks with the requests made one after another. Replies
cost nothing here. Prints a table and one JSON line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from serving import QUICK, table

from tests.billing import VENDORS, billed, document, plan

N_DOCUMENTS = 3 if QUICK else 12
N_TOKENS = 20_000
READS = {1: (1, 1), 2: (2, 1), 5: (5, 1), 20: (5, 4)}  # reads → steps, tasks


def main() -> None:
    documents = [document(f"Nils {i}", N_TOKENS) for i in range(N_DOCUMENTS)]
    rows: list[tuple[object, ...]] = [
        ("vendor", "reads", "US dollars", "least", "÷ least", "without control", "÷ without")
    ]
    worst_least = worst_without = 0.0
    for name, vendor in VENDORS.items():
        for n_reads, (n_steps, n_tasks) in READS.items():
            tasks = [
                (each, plan(n_steps, f"boat {i}")) for i in range(n_tasks) for each in documents
            ]
            server, budget = billed(vendor, tasks)
            usd, least, without = server.cache.usd, server.least_usd(), server.usd_without_control()
            assert budget.cost_usd is not None
            assert abs(budget.cost_usd - usd) < 1e-9, "the budget counts what is billed"
            rows.append((name, n_reads, usd, least, usd / least, without, usd / without))
            worst_least = max(worst_least, usd / least)
            worst_without = max(worst_without, usd / without)
    table(rows)
    figures = {"worst_to_least": worst_least, "worst_to_without_control": worst_without}
    print(json.dumps({"bench": "cache_control", "n_documents": N_DOCUMENTS, **figures}))


if __name__ == "__main__":
    main()
