"""Agents: trained networks with the search around them.

- `sources` resolves a name to a checkpoint or a file, `build` makes networks and searches from a config, and
  `agent.load` loads an agent.
- `weight_files` and `stablehlo` export a network; `model_card` describes it.
- `analysis` and `attention` evaluate positions.
"""
