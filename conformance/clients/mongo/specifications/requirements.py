"""Which tests a server can run, from what it says of itself."""


class Identity:
    """The version and the kind of a server."""

    def __init__(self, client, is_authenticated):
        hello = client.admin.command("hello")
        self.version = tuple(client.admin.command("buildInfo")["versionArray"][:3])
        self.topology = "replicaset" if "setName" in hello else "single"
        self.is_authenticated = is_authenticated

    def runs(self, requirements):
        """Tells whether one of the requirements holds; without any, everything runs."""
        return not requirements or any(self._meets(requirement) for requirement in requirements)

    def _meets(self, requirement):
        least, most = requirement.get("minServerVersion"), requirement.get("maxServerVersion")
        if least and self.version < parsed(least):
            return False
        if most and self.version > parsed(most):
            return False
        if "topologies" in requirement and self.topology not in requirement["topologies"]:
            return False
        if "auth" in requirement and requirement["auth"] != self.is_authenticated:
            return False
        # Servers of other kinds, encryption on the client, and parameters that no server here has.
        return requirement.get("serverless") != "require" and not requirement.get("csfle") and (
            "serverParameters" not in requirement
        )


def parsed(version):
    """Returns `4.4.1` as numbers; a number that is left out is 0, or the highest where `x` stands for it."""
    parts = [999 if part in ("x", "99") else int(part) for part in version.split(".")]
    return tuple([*parts, 0, 0][:3])
