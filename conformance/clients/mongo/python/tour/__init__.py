"""The checks of the tour, by topic."""

from checks import Tour
from tour import administration, commands, connections, documents, expiry, indexes, models, queries, streams, transactions


def whole_tour():
    """Returns every check, in order."""
    tour = Tour()
    for topic in (connections, documents, queries, indexes, expiry, transactions, streams, administration, commands, models):
        topic.declare(tour)
    return tour
