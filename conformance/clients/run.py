#!/usr/bin/env python3
"""Runs the official Azure SDKs against a Bolide binary: `python3 conformance/clients/run.py --binary PATH`.

Parts, each of which can be named with `--only`:

    python        tour with azure-cosmos, synchronous and asynchronous
    node          tour with @azure/cosmos
    rust          tour with azure_data_cosmos
    go            tour with azcosmos
    java          tour with azure-cosmos for Java
    dotnet        tour in the shape of the .NET SDK: its binary batches and its bulk mode; needs no .NET
    readme        the snippets of the README, as they stand there
    python-suite  the test files that azure-cosmos ships in its source archive

A tour is a list of small named checks. Each tour runs over HTTP and over HTTPS on a server that keeps everything in
memory, and once more over HTTP on a server with a data directory. The servers are started here and stopped with
SIGTERM, which must end in status 0. What is needed (a virtual environment, node modules, a Rust crate, the source
archive) is created on first use; where a tool is missing only its part fails, with the hint how to install it.
"""

import argparse
import sys
from pathlib import Path

from runner import parts, readme
from runner.places import Places
from runner.report import Report
from runner.results import Results

CHOICES = {
    "python": parts.run_python_tours,
    "node": parts.run_node_tour,
    "rust": parts.run_rust_tour,
    "go": parts.run_go_tour,
    "java": parts.run_java_tour,
    "dotnet": parts.run_dotnet_tour,
    "readme": readme.run,
    "python-suite": parts.run_python_suite,
}


def main():
    """Runs the chosen parts, prints the summary, and returns the exit status."""
    options = arguments()
    places = Places.of_repository(options.binary)
    report = Report()
    for name in options.only:
        CHOICES[name](places, report)
    report.print_summary()
    if options.results:
        Results(options.results).take(report)
    if not options.keep:
        places.remove_scratch()
    return 1 if report.failed else 0


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True, help="the `bolide` executable")
    parser.add_argument("--only", type=part_names, default=list(CHOICES), help="comma-separated parts; default: all")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="also write what ran to FILE, for `cargo xtask compatibility`"
    )
    parser.add_argument("--keep", action="store_true", help="keep the data directories and result files of this run")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"no such executable: {options.binary}")
    return options


def part_names(text):
    """Splits the value of `--only` and refuses unknown parts."""
    names = text.split(",")
    for name in names:
        if name not in CHOICES:
            raise argparse.ArgumentTypeError(f"unknown part {name!r}; there are {', '.join(CHOICES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
