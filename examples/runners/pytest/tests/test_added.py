from planted import passes_without


def test_gives_a_discount():
    passes_without("new")
