"""Credentials of a cloud account: there is none, the tests authenticate with the account key."""


def get_credential(**_options):
    """Returns no Entra ID credential; only the tests' AAD lanes, which are not run here, would use it."""
    return None
