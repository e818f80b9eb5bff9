"""Graphs: the static `Topology` of a board, and the `RelationVocabulary` that the boards of a family share.

A topology holds numpy arrays, which are constants of compiled programs: typed directed edges, kinds of nodes, and the
node or pair of nodes of each action.
"""
