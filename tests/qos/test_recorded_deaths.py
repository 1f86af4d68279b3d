"""The next deaths of recorded nodes, beside what their kernels and kubelets said of the same moment."""

from kubectl_qos.present.next_death import killed_by
from kubectl_qos.qos.simulation.next_death import next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node
from tests.qos.recorded import cadvisor_b, snapshot_b


def test_swap_of_the_node_makes_no_limit_look_full() -> None:
    """The share of a limit is never more than the cgroup's own files say."""
    used, limits = cadvisor_b("container_memory_usage_bytes"), cadvisor_b("container_spec_memory_limit_bytes")
    own = [death for death in next_deaths(state_of_node(snapshot_b(), "node1")) if death.limit_bytes]
    assert len(own) > 20
    for death in own:
        place = death.key[1], death.container if death.mechanism.value == "container limit" else ""
        assert death.limit_bytes is not None
        assert death.limit_bytes - limits[place] in range(4096), "the kernel rounds down to pages"
        percent = int(killed_by(death).rpartition(" ")[2].rstrip("%"))
        assert percent <= 100 * used[place] / limits[place] + 1, place
