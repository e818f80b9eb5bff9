"""The command line: `alphagat NAME ...` is the module NAME of this package, with `make_parser()` and `run(argv)`."""

COMMANDS = {
    "train": "Trains a network by self-play.",
    "play": "Serves a web page for playing against a network and inspecting its analysis.",
    "watch": "Serves a live view of a run: curves, and games of the newest network against itself.",
    "match": "Plays A against B, each opening with both colours, and reports the score of A.",
    "evaluate": "Plays a checkpoint of a run against an opponent, each opening with both colours.",
    "rate": "Rates the checkpoints of a run on the Elo scale, by matches between them and against anchors.",
    "report": "Writes a page about a run (results, curves, games, attention), or a comparison of several.",
    "export": "Writes a trained network to one file.",
    "pretrain": "Trains a network on recorded games instead of self-play.",
    "launch": "Trains in several processes on this machine, one per GPU by default.",
    "gtp": "Runs a GTP engine on standard input and output.",
    "uci": "Runs a UCI chess engine on standard input and output.",
    "analyze": "Analyzes positions that it reads as JSON lines from standard input.",
    "check": "Checks the rules and features of a game, such as one that you have written, by random play.",
    "doctor": "Prints versions, devices, their links, the speed of an all-reduce, and warnings.",
    "configs": "Lists the configs of the package, or prints one.",
    "completion": "Prints a script that completes commands and flags in a shell.",
}
