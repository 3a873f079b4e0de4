"""Helper for clients of rqps in Python (docs/clients.md). Write a class with the methods that you
need and call serve(YourClass()). Steps are methods that do one event each.

    class Redis:
        steps = {"get": "point", "set": "write"}   # name: point, range or write

        def open(self, target, client, clients, seed, rows, folder, options): ...
        def load(self, rows, loading): ...          # optional; returns the number of rows
        def get(self): ...                          # one event

An event that fails in a way that a rate survives raises Failed("code"): it is counted, not timed.
"""
import json
import sys
from time import perf_counter_ns as now


class Failed(Exception):
    """An event that did not succeed and may be tried again; its text is the code."""


def run(event, us):
    """Does events for so many microseconds, one at least."""
    hist, errors, events = {}, {}, 0
    begun = last = now()
    until = begun + us * 1000
    while True:
        try:
            event()
        except Failed as failed:
            code = str(failed)
            errors[code] = errors.get(code, 0) + 1
            end = now()
        else:
            end = now()
            latency = end - last
            # Eight bits of each latency: within one per cent.
            shift = max(latency.bit_length() - 8, 0)
            latency = latency >> shift << shift
            hist[latency] = hist.get(latency, 0) + 1
            events += 1
        last = end
        if end >= until:
            break
    answer = {"n": events, "us": (end - begun) / 1000, "hist": hist}
    if errors:
        answer["errors"] = errors
    return answer


def serve(client, protocol=sys.stdin, answers=sys.stdout):
    """Answers rqps until it closes the input. What the client prints goes to standard error."""
    sys.stdout = sys.stderr
    event = None

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    for line in protocol:
        (question, said), = json.loads(line).items()
        if question == "hello":
            steps = [{"name": name, "group": group} for name, group in client.steps.items()]
            say({"hello": 1, "steps": steps, "load": hasattr(client, "load")})
        elif question == "open":
            # Where modules are that `pip install --target FOLDER` has put there.
            sys.path[:0] = filter(None, [said["options"].get("modules")])
            version = client.open(**{"folder": None, **said})
            say({"version": version} if version else {})
        elif question == "load":
            say({"rows": client.load(said, lambda rows: say({"loading": rows}))})
        elif question == "prepare":
            event = getattr(client, said.replace("-", "_"))
            say({})
        elif question == "run":
            say(run(event, said))
        else:
            say({"error": f"this helper knows no {question}"})
