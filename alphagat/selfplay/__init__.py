"""Self-play: a scan of search and step over games that never stop, value targets, symmetries.

A ply becomes a training sample once its horizon lies behind it, so each call adds as many samples as it plays plies: no
position is thrown away, none is trained on an unknown outcome, and short games are not favoured.
"""
