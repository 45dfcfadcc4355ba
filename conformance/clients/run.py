#!/usr/bin/env python3
"""Runs the official Azure SDKs against a Bolide binary: `python3 conformance/clients/run.py --binary PATH`.

Parts, each of which can be named with `--only`:

    python        tour with azure-cosmos, synchronous and asynchronous
    node          tour with @azure/cosmos
    rust          tour with azure_data_cosmos
    go            tour with azcosmos
    java          tour with azure-cosmos for Java
    java-failover two servers over one store, of which one is killed under load; with `--several` only
    dotnet        tour in the format of the .NET SDK: its binary batches and its bulk mode; needs no .NET
    emulator      the Testcontainers modules of four languages, and the SDKs' tours, against `--emulator`; with `--whole` or
                  named only
    readme        the snippets of the README, as they stand there
    python-suite  the test files that azure-cosmos ships in its source archive: half of those that are there for the
                  synchronous and for the asynchronous client, with `--whole` all
    go-suite      the tests of azcosmos that ask a server; with `--whole` all its tests
    rust-suite    the tests of azure_data_cosmos and of its driver that ask a server; with `--whole` or named only

And for the MongoDB API; those of Rust, Java and PyMongo's suite with `--whole` or named only:

    mongo-python          tour with PyMongo
    mongo-node            tour with the MongoDB driver for Node.js, and with Mongoose
    mongo-shell           tour with mongosh
    mongo-rust            tour with the mongodb crate
    mongo-go              tour with the MongoDB driver for Go
    mongo-java            tour with the MongoDB driver for Java
    mongo-tools           a database through mongodump, mongorestore, mongoexport and mongoimport
    pymongo-suite         the test files that PyMongo ships in its source archive and that use a server
    mongoose-suite        Mongoose's own tests, from a checkout of its repository; with `--mongoose` only
    mongo-specifications  the tests of MongoDB's driver specifications, in the Unified Test Format
    mongo-corpus          the BSON corpus: every document through the server and back, damaged ones refused

A tour is a list of small named checks. Each tour runs over HTTP and over HTTPS on a server that keeps everything in
memory, and once more over HTTP on a server with a data directory; with `--postgres` both have a store in PostgreSQL. A suite is an SDK's own tests, run over HTTPS and
compared with a list of those that fail. The servers are started here and stopped with SIGTERM, which must end in status
0. What is needed (a virtual environment, node modules, Rust crates, the SDKs' archives) is created on first use; where a
tool is missing only its part fails, with the hint how to install it.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner import emulator, parts, readme
from runner.mongo import mongoose_suite, pymongo_suite, specifications, tours
from runner.places import Places
from runner.report import Report
from runner.results import Results

TOURS = {
    "python": parts.run_python_tours,
    "node": parts.run_node_tour,
    "rust": parts.run_rust_tour,
    "go": parts.run_go_tour,
    "java": parts.run_java_tour,
    "java-failover": parts.run_java_failover,
    "dotnet": parts.run_dotnet_tour,
    "emulator": emulator.run,
    "readme": readme.run,
    "mongo-python": tours.run_python_tour,
    "mongo-node": tours.run_node_tour,
    "mongo-shell": tours.run_shell_tour,
    "mongo-rust": tours.run_rust_tour,
    "mongo-go": tours.run_go_tour,
    "mongo-java": tours.run_java_tour,
    "mongo-tools": tours.run_tools_tour,
}
SUITES = {
    "python-suite": parts.run_python_suite,
    "go-suite": parts.run_go_suite,
    "rust-suite": parts.run_rust_suite,
    "mongo-specifications": specifications.run_specifications,
    "mongo-corpus": specifications.run_corpus,
    "pymongo-suite": pymongo_suite.run,
    "mongoose-suite": mongoose_suite.run,
}
# They take many minutes.
ONLY_WHOLE = [
    "emulator",
    "rust-suite",
    "mongo-rust",
    "mongo-java",
    "pymongo-suite",
]


def main():
    """Runs the chosen parts, prints the summary, and returns the exit status."""
    options = arguments()
    places = Places.of_repository(options.binary, options.cases, options.mongoose, options.postgres, options.several)
    report = Report()
    names = options.only or default_parts(options)
    # A tour mostly waits for one server, so the tours run beside the suites. Only one suite runs at a time: some of their tests have time limits.
    lanes = [
        lambda: [TOURS[name](places, report) for name in names if name in TOURS],
        lambda: [SUITES[name](places, report, options.whole) for name in names if name in SUITES],
    ]
    with ThreadPoolExecutor(len(lanes)) as pool:
        for ended in [pool.submit(lane) for lane in lanes]:
            ended.result()
    report.print_summary()
    if options.results:
        Results(options.results).take(report)
    if not options.keep:
        places.remove_scratch()
    return 1 if report.failed else 0


def default_parts(options):
    """Returns the parts of a run that names none."""
    names = [name for name in [*TOURS, *SUITES] if options.whole or name not in ONLY_WHOLE]
    needed = {"mongoose-suite": options.mongoose, "java-failover": options.several}
    return [name for name in names if needed.get(name, True)]


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True, help="the `bolide` executable")
    parser.add_argument("--only", type=part_names, help="comma-separated parts; default: those that do not need `--whole`")
    parser.add_argument("--whole", action="store_true", help="run suites whole, and those that take many minutes")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="also write what ran to FILE, for `cargo xtask compatibility`"
    )
    parser.add_argument(
        "--cases", type=Path, metavar="DIR", help="a folder with cases, instead of `../shared/cases` next to the project"
    )
    parser.add_argument(
        "--mongoose", type=Path, metavar="DIR", help="a checkout of Mongoose's repository, whose package on npm has no tests"
    )
    parser.add_argument(
        "--postgres", metavar="URL", help="keep the data of all servers in PostgreSQL, in databases beside this one"
    )
    parser.add_argument(
        "--several", metavar="URL", help="a PostgreSQL database beside which several servers share one, for `java-failover`"
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
        if name not in TOURS and name not in SUITES:
            raise argparse.ArgumentTypeError(f"unknown part {name!r}; there are {', '.join([*TOURS, *SUITES])}")
    return names


if __name__ == "__main__":
    sys.exit(main())
