"""Stands in for the unpublished test package that azure-cosmos' own tests import.

Only `get_credential` and `is_live` are used by the files that run here; see cosmos tests' `test_config.py`.
"""
