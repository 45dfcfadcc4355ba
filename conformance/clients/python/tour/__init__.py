"""The tour of Bolide with azure-cosmos: what an application does, as checks that both flavours of the SDK run.

    resources   account, databases, containers, throughput
    items       writes, reads, conditions, patches, ids, sessions, change feed
    queries     the same queries on one range and on several, in pages of one, three and any size
    scripts     stored procedures, triggers, user-defined functions
    ttl         items expire at their exact second, with the clock moved by hand
"""

from checks import Tour
from tour import items, queries, resources, scripts, ttl


def whole_tour():
    """Returns every check of the tour in the order above."""
    tour = Tour()
    for part in (resources, items, queries, scripts, ttl):
        part.declare(tour)
    return tour
