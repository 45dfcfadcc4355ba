"""The results, in a file that is committed: `cargo xtask compatibility` makes a page of it."""

import json


class Results:
    """The results file. Results of parts that did not run this time are kept."""

    def __init__(self, path):
        self._path = path

    def take(self, report):
        """Writes what ran."""
        known = json.loads(self._path.read_text()) if self._path.exists() else {"checks": {}, "files": {}}
        known["checks"] |= report.checks
        known["files"] |= report.files
        known["checks"] = dict(sorted(known["checks"].items()))
        self._path.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n")
