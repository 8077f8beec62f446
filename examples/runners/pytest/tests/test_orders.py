from planted import dies_with, passes_without


def test_pays():
    pass


def test_ships():
    passes_without("broken")


def test_returns():
    dies_with("killed")
