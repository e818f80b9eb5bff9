"""The limits of the web server, all in one place; `docs/guides/play.md` lists them."""

from alphagat.bounds import Limits

# Requests. Larger ones are refused, except for headers that arrive in one read: h11 checks only incomplete ones.
MAX_HEADERS = 16 * 1024  # bytes of the request line and all headers, as long as they are incomplete
MAX_BODY = 64 * 1024  # bytes
MAX_FILE = 4 * 2**20  # bytes of a file of games, the body of /api/games
MAX_MOVES = 4_096  # per request
MAX_NAME = 40  # characters of a board, a move or a person
MAX_PATH = 1_024  # characters of a network

# Replays of games and readings of files. A board has its own lane, and so have files.
MAX_WORKING = 16  # at a time, on as many of the 40 threads of the server
MAX_PIECES = 128  # in progress or waiting, in a lane

# Connections. Above these numbers, connections that wait for their client are dropped, see `http_server`.
MAX_CONNECTIONS = 512
MAX_CONNECTIONS_PER_CLIENT = 64  # one IPv4 address, or one IPv6 network of 64 bits

# Seconds.
TRANSFER_S = 20.0  # for a request to arrive, and for the client to take its answer
ANSWER_S = 120.0  # for an answer, including compilation on the first request for a board
KEEP_ALIVE_S = 5  # between two requests on a connection
ENDING_S = 2.0  # for the answers in progress, once the server is to end

# Flags of `alphagat play` and `alphagat watch`, by name. Above them, the command ends with status 2.
FLAGS = {
    "port": Limits(at_least=0, at_most=65_535),
    "simulations": Limits(at_least=0, at_most=4_096),  # per position
    "max_batch": Limits(at_least=1, at_most=4_096),  # positions
    "max_wait_ms": Limits(at_least=0, at_most=10_000),  # milliseconds
    "max_queue": Limits(at_least=1, at_most=65_536),  # requests
}
