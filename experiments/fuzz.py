"""Fuzz a target with feedback on coverage: does a reader ever fail in a way that is not documented?

    pip install --group fuzz
    python experiments/fuzz.py plans --seconds 600
    python experiments/fuzz.py --list

Targets are those of tests/faults/fuzzing.py. An input that ends in another error is printed, kept in out/fuzz/TARGET/,
and belongs into `FOUND` of tests/faults/test_fuzz.py. Inputs that reach new code are kept for the next run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["pearl"]):
    from tests.faults.fuzzing import TARGETS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", nargs="?", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--list", action="store_true", help="the names of the targets")
    options = parser.parse_args()
    if options.list or options.target is None:
        print(*TARGETS, sep="\n")
        return
    target = TARGETS[options.target]
    inputs = ROOT / "out" / "fuzz" / options.target
    inputs.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.first_inputs()):
        (inputs / f"seed-{number}").write_bytes(seed)

    def read(data: bytes) -> None:
        try:
            target.accepts(data)
        except BaseException:
            print(f"{options.target}: {data!r}", flush=True)
            raise

    arguments = [str(inputs), f"-artifact_prefix={inputs}/", f"-max_total_time={options.seconds}"]
    atheris.Setup(
        [sys.argv[0], *arguments, "-timeout=20", "-rss_limit_mb=3000", "-max_len=20000"], read
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
