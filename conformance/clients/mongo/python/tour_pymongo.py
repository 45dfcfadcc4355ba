#!/usr/bin/env python3
"""The tour of Bolide with PyMongo: `python tour_pymongo.py --uri URI --endpoint URL --key KEY --certificate FILE`.

connections     topologies, encryption, compression, authentication
documents       writes of one and of many, findAndModify, cursors, types
queries         tables of queries, updates, pipelines and expressions
indexes         definitions, uniqueness, conflicts
expiry          both kinds of time to live, with the clock moved by hand
transactions    sessions, retryable writes, transactions
streams         change streams
administration  databases, collections, validation, what tools ask
commands        every command of the server, from a table
models          schemas of MongoEngine and of Beanie
"""

import sys

from tour import whole_tour
from tour.world import World, arguments

if __name__ == "__main__":
    with World(arguments()) as world:
        sys.exit(1 if whole_tour().run(world) else 0)
