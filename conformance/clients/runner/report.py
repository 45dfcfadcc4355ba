"""Counts results and prints them as a table."""

from dataclasses import dataclass


@dataclass
class Line:
    """One line of the summary. `note` says why when something failed or was skipped as a whole."""

    name: str
    passed: int
    failed: int
    skipped: int
    note: str


class Report:
    """What ran so far."""

    def __init__(self):
        self.lines = []
        # Of tours: SDK → the names of the checks that passed, and the lines `name: reason` of those that failed.
        self._passed = {}
        self._failures = {}
        # Of the SDKs' own tests: SDK → file → how many passed and how many failed as listed.
        self.files = {}

    def add_check(self, sdk, line, passed):
        """Records the result of a check of a tour: its name, or `name: reason` if it failed."""
        self._passed.setdefault(sdk, set())
        (self._passed if passed else self._failures).setdefault(sdk, set()).add(line)

    @property
    def checks(self):
        """SDK → the names of the checks that passed in every tour that has them, in order."""
        found = {}
        for sdk, passed in self._passed.items():
            # Names may contain colons, so that a failure's name is found among those that passed elsewhere.
            failures = tuple(self._failures.get(sdk, ()))
            found[sdk] = sorted(name for name in passed if not any(line.startswith(f"{name}: ") for line in failures))
        return found

    def add_file(self, sdk, file, passed, listed):
        """Records the result of a file of an SDK's own tests."""
        self.files.setdefault(sdk, {})[file] = {"passed": passed, "fail as listed": listed}

    def add(self, name, passed=0, failed=0, skipped=0, note=""):
        """Adds a line and prints it at once, so that a long run shows where it is."""
        line = Line(name, passed, failed, skipped, note)
        self.lines.append(line)
        print(f"== {name}: {passed} passed, {failed} failed, {skipped} skipped {note}".rstrip(), flush=True)

    @property
    def failed(self):
        """How many checks and preparations failed."""
        return sum(line.failed for line in self.lines)

    def print_summary(self):
        """Prints the table and the closing line."""
        width = max((len(line.name) for line in self.lines), default=0)
        print(f"\n{'part':<{width}}  passed  failed  skipped")
        for line in self.lines:
            print(f"{line.name:<{width}}  {line.passed:>6}  {line.failed:>6}  {line.skipped:>7}  {line.note}".rstrip())
        total = [sum(getattr(line, kind) for line in self.lines) for kind in ("passed", "failed", "skipped")]
        print("{} passed, {} failed, {} skipped".format(*total))
