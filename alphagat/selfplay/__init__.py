"""Self-play: games that continue from call to call, training targets, symmetries.

A ply becomes a training sample once `horizon` plies have followed it, so each call yields as many samples as it plays
plies. No position is discarded, none is trained on before its targets are known, and short games are not
over-represented.
"""
