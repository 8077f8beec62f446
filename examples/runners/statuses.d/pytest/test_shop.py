import os

PLANTED = os.environ.get("PLANTED")
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
attempts = []


def test_adds():
    # Each worker of --dist=each runs all tests: rows of one name.
    assert (PLANTED, WORKER) not in (("first-row", "gw0"), ("last-row", "gw1"))


def test_sends():
    attempts.append(1)
    assert PLANTED not in ("flaky", "outside") or len(attempts) > 1


def test_pays():
    assert PLANTED != "broken"


def test_ships():
    pass


def test_returns():
    pass
