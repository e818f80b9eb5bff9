"""Agents: trained networks with the search around them.

`agent.load` restores one from a run, a file or the package. `weight_files` and `stablehlo` export it, `analysis` and
`attention` show what it thinks of a position.
"""
