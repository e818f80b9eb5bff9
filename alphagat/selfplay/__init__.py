"""Self-play: games that continue from call to call, and training targets.

A ply waits until at least `horizon` - 1 later plies of its slot were played. It then becomes a training sample if it
was searched in full. So each call yields the samples of as many plies as it plays: none is trained on before its
targets are known, and short games are not over-represented.
"""
