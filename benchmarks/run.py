"""make bench: how fast poise is, with its peers beside it.

    python benchmarks/run.py                   all sections; the ragdolls take most of the time
    python benchmarks/run.py --only peers      one of them (may be given several times)
    python benchmarks/run.py --only ragdolls --falls 200
    python benchmarks/run.py --quick           everything once, a few seconds, too short to judge

Prints tables and writes all numbers to out/bench.json, pictures beside it. Compare ratios from one
run: absolute times move from machine to machine.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from balancing import balancing
from batch import batch
from calls import calls, imports, threads
from contact import contact
from control import features, overhead
from edges import edges
from efforts import efforts
from files import files
from interop import interop
from kernels import kernels, rest
from large_steps import large_steps
from limits import fma, growth, limits
from memory import memory
from meshes import meshes
from moving import iterations, moving
from ragdolls import ragdolls
from rivals import peers
from stiff import stiff
from studio import studio
from tables import ROOT, Bound, draw, machine, say, show, verdicts, write
from timing import FULL, QUICK
from touching import touching

SECTIONS = {
    "fma": fma,
    "limits": limits,
    "kernels": kernels,
    "rest": rest,
    "peers": peers,
    "growth": growth,
    "overhead": overhead,
    "features": features,
    "mujoco": interop,
    "threads": threads,
    "calls": calls,
    "import": imports,
    "files": files,
    "contact": contact,
    "contacts": touching,
    "meshes": meshes,
    "standing": stiff,
    "efforts": efforts,
    "moving": moving,
    "iterations": iterations,
    "edges": edges,
    "large-steps": large_steps,
    "ragdolls": ragdolls,
    "memory": memory,
    "batch": batch,
    "studio": studio,
    "balance": balancing,
}


def main() -> None:
    """Run the sections, print them, write the record."""
    args = arguments()
    plan = QUICK if args.quick else FULL
    if args.falls is not None:
        plan = replace(plan, falls=args.falls)
    where = machine()
    build = where["build"]
    say(f"{where['cpu']}, {where['cores']} cores, load {where['load']}, Python {where['python']}")
    say(f"{build['compiler']} {build['flags']}")
    for use, isa in where["isa"].items():
        say(f"kernels, {use}: {isa} ({build.get(f'flags_{isa}', '')})")
    say(f"commit {where['commit']}; {where['versions']}")
    say("times are the best of many windows, in brackets how far the median lies above")
    begin = time.perf_counter()
    record = {}
    bounds: list[Bound] = []
    for name in args.only or SECTIONS:
        section = SECTIONS[name](plan)
        show(section, plan)
        bounds += section.bounds
        record[name] = section.record(plan)
        for picture, paint in section.pictures.items():
            args.out.parent.mkdir(parents=True, exist_ok=True)
            paint(args.out.parent / picture)
    seconds = time.perf_counter() - begin
    write(args.out, {"machine": where, "quick": plan.quick, "seconds": seconds, "sections": record})
    violated = [bound for bound in bounds if not bound.holds]
    if not plan.quick and bounds:
        say(
            f"\n{len(bounds) - len(violated)} of {len(bounds)} bounds hold"
            + (":" if violated else "")
        )
        if violated:
            draw(verdicts(violated, plan))
    say(f"\n{seconds:.0f} s; all numbers are in {args.out}")


def arguments() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run everything once, untimed")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="a section")
    parser.add_argument("--falls", type=falls, help="how many ragdolls fall, half on each ground")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench.json", help="JSON file")
    return parser.parse_args()


def falls(text: str) -> int:
    """A number of falls: one or more."""
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{count}: at least one must fall")
    return count


if __name__ == "__main__":
    main()
