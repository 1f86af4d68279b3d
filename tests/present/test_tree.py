from itertools import pairwise

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.tree import file_lines, tree_lines, tree_notes, tree_rows
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, cgroup_tree

DEMO = DemoSource().snapshot(Scope())


def demo_tree(name: str) -> CgroupTree:
    return cgroup_tree(DEMO.by_node()[name], DEMO.setup(name))


TREE = demo_tree("worker-2")


def widest(width: int | None) -> int:
    return max(len(line) for line in tree_lines(TREE, width))


def test_names_are_shortened_only_where_they_have_to_be() -> None:
    whole = tree_lines(TREE)
    assert widest(None) > 110
    assert tree_lines(TREE, widest(None)) == whole
    at_100 = tree_lines(TREE, 100)
    assert any("─ kubepods-burstable-pod75782fbe….slice   shop/api-" in line for line in at_100)
    assert any("─ cri-containerd-75d6375404ee….scope   container c" in line for line in at_100)
    at_76 = tree_lines(TREE, 76)
    assert any("─ …pod75782fbe….slice   shop/api-" in line for line in at_76)
    assert widest(76) <= 76
    assert len(whole) == len(at_100) == len(at_76)


def test_values_are_in_one_column_at_every_width() -> None:
    for width in (None, 100, 76, 1):
        lines = [line for line in tree_lines(TREE, width) if " = " in line]
        assert len({line.index(" = ") for line in lines}) == 1
        assert len(lines) == len(list(file_lines(TREE)))


def test_the_bars_of_the_tree_join() -> None:
    """Below every ├ and │ is another bar, or the ├ or └ that ends it."""
    lines = tree_lines(TREE)
    for upper, lower in pairwise(lines):
        for place, character in enumerate(upper.partition(" = ")[0]):
            if character in "├│":
                assert lower[place : place + 1] in {"├", "│", "└"}, (upper, lower)


def test_every_directory_has_its_line() -> None:
    shown = [row.directory for row in tree_rows(TREE) if not row.file]
    assert shown == list(TREE.walk())
    assert len([line for line in tree_lines(TREE)[1:] if " = " not in line]) == len(shown)
    assert {found.level for found in shown} == {
        CgroupLevel.KUBEPODS,
        CgroupLevel.CLASS,
        CgroupLevel.POD,
        CgroupLevel.CONTAINER,
    }


def test_notes_name_the_nodes_only_where_they_differ() -> None:
    other = demo_tree("worker-1")
    same = tree_notes([TREE, other], ())
    assert [note for note in same if note.startswith("worker-")] == []
    (reserved,) = (note for note in tree_notes([TREE], ()) if note not in tree_notes([TREE, TREE], ()))
    assert reserved == (
        "512Mi of the node's 16Gi are reserved: kubepods has the rest; allocatable (15.4Gi) also excludes"
        " hugepages and the eviction threshold of 100Mi"
    )
    partly = cgroup_tree(DEMO.by_node()["worker-2"], DEMO.setup("worker-2"), lambda _: False)
    notes = tree_notes([partly, other], ())
    assert notes[0].startswith("worker-2: the values of kubepods and the classes include 17 more pods")


def test_without_cgroups_per_qos_there_is_only_a_word() -> None:
    node = Node(name="n1", memory_capacity_bytes=1 << 34)
    tree = cgroup_tree([], NodeSetup.of(node, Kubelet(cgroups_per_qos=False), "1.36"))
    assert tree_lines(tree) == ["/sys/fs/cgroup"]
    assert tree_notes([tree], ()) == [
        "cgroupsPerQOS is off: the kubelet creates no cgroups, the runtime decides where containers are"
    ]
