"""The formats of game files: `sgf` and `pgn` read and write `record.GameRecord`s within the limits of `limits`."""
