"""The table of what was measured, and fair turns."""

import statistics

from .basics import Failure, say


class Table:
    """Rows of what was measured, with its target and whether it is met."""

    def __init__(self):
        self.rows, self.missed = [], 0

    def compare(self, what, peer, ours, theirs, at_least=None):
        """One row from the rounds of two programs that took turns."""
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        met = at_least is None or ratio >= at_least
        self.add(what, f"{statistics.median(ours):,.0f}/s", f"{peer}: {statistics.median(theirs):,.0f}/s",
                 f"{ratio:.2f}", f"≥ {at_least}" if at_least else "", met)

    def limit(self, what, value, unit, at_most):
        self.add(what, f"{value:,.0f} {unit}", "", "", f"≤ {at_most:,} {unit}", value <= at_most)

    def add(self, what, ours, peer="", ratio="", target="", met=True):
        verdict = ("met" if met else "**missed**") if target else ""
        self.rows.append((what, ours, peer, ratio, target, verdict))
        self.missed += not met
        say(" | ".join(cell for cell in self.rows[-1] if cell))

    def markdown(self, facts):
        head = ("", "Ashlar", "peer", "ratio", "target", "")
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n\n" + "".join(f"- {fact}\n" for fact in facts)


def take_turns(rounds, *measure):
    """Calls each of `measure` once per round, in turn; gives a list for each."""
    figures = [[] for _ in measure]
    for turn in range(rounds):
        # Whoever is second may find warmer caches: change places.
        order = range(len(measure)) if turn % 2 == 0 else reversed(range(len(measure)))
        for index in order:
            figures[index].append(measure[index]())
    return figures


def write_between(path, begin, end, text):
    """Writes a text to its marked place in a document."""
    document = path.read_text()
    if begin not in document or end not in document:
        raise Failure(f"{path} has no place for the table: {begin.strip()} … {end}")
    path.write_text(document[:document.index(begin)] + begin + text + document[document.index(end):])
