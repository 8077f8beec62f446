import pytest

from planted import passes_without


class TestCart:
    def test_pays(self):
        passes_without("flaky-1")

    def test_pays_twice(self):
        passes_without("breakage")

    class TestEmpty:
        def test_pays(self):
            passes_without("flaky-2")


@pytest.mark.parametrize("path", ["/", "/a b", "it's a \"cart\" > [1] (ü)::x\\y", "it's a"])
def test_route(path):
    if len(path) > 10:
        passes_without("flaky-3")


def test_pays():
    pass
