"""Graphs: the static `Topology` of a board, and the `RelationVocabulary` that the boards of a family share.

Everything is numpy, and a constant to a compiled program: typed directed edges, kinds of nodes, and the node or the
pair of nodes at which each action lives.
"""
