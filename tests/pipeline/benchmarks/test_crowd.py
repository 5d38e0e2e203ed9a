from benchmarks.pipeline.crowd import Crowd


def test_requests_add_up() -> None:
    """However they are rounded, no request is lost, and none is made up."""
    assert Crowd(entities=777).counts(10_001).sum() == 10_001


def test_first_is_busiest() -> None:
    """The first of Zipf's law makes twice as many requests as the second."""
    first, second, *_ = Crowd(entities=50).counts(1_000_000).tolist()
    assert abs(first / second - 2) < 0.001


def test_giant_has_its_share() -> None:
    """The giant makes what it is set to make, and the others the rest by the same law."""
    first, second, third, *_ = Crowd(entities=50, giant=0.3).counts(1_000_000).tolist()
    assert first == 300_000
    assert abs(second / third - 1.5) < 0.001
