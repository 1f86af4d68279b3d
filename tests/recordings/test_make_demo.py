"""The demo is what its script makes of the recordings."""

from kubectl_qos.cluster.files import DEMO_FILE
from tests.recordings import make_demo


def test_the_demo_is_made_of_the_recordings() -> None:
    assert make_demo.make() == DEMO_FILE.read_text(encoding="utf-8")
