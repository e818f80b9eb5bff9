import numpy as np

from alphagat.graphs.topology import RelationVocabulary, topology_from_matrix

VOCABULARY = RelationVocabulary(family="line", version=1, relations=("self", "left", "right"), node_kinds=("cell",))


def test_edges_match_relation_matrix():
    #            sender 0   1   2
    matrix = np.array([[0, 2, -1], [1, 0, 2], [-1, 1, 0]])
    topology = topology_from_matrix(VOCABULARY, matrix, np.zeros(3), (np.array([2, 0]), np.array([2, 1])), (1, 3))
    assert (topology.num_nodes, topology.num_edges, topology.num_actions) == (3, 7, 2)
    edges = set(zip(topology.senders.tolist(), topology.receivers.tolist(), topology.relations.tolist()))
    assert edges == {(0, 0, 0), (1, 1, 0), (2, 2, 0), (1, 0, 2), (2, 1, 2), (0, 1, 1), (1, 2, 1)}
    assert (topology.action_senders.tolist(), topology.action_receivers.tolist()) == ([2, 0], [2, 1])
    assert topology.action_kinds.tolist() == [0, 0]
    assert (topology.relation_matrix == matrix).all()
    arrays = (topology.senders, topology.receivers, topology.relations, topology.node_kinds, topology.action_kinds)
    assert all(array.dtype == np.int32 for array in arrays)
