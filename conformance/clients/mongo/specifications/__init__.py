"""Runs tests in the Unified Test Format of MongoDB's driver specifications with PyMongo as the client."""
