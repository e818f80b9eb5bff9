"""Plays two players against each other, for `alphagat match` and `alphagat evaluate`."""

import contextlib
from typing import NamedTuple

import jax
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from alphagat.agents.agent import load
from alphagat.contests import match_report
from alphagat.contests.contenders import EngineLimits, default_board, make_contender
from alphagat.contests.match_options import MatchOptions, Settings, read_limits, read_settings
from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.game_files import records_of, to_text
from alphagat.evaluation.match_parts import Series
from alphagat.evaluation.match_result import MatchResult, join
from alphagat.evaluation.openings import Openings, distinct_openings, openings_after
from alphagat.evaluation.players import Player
from alphagat.evaluation.single_player import Scores, play_alone
from alphagat.evaluation.sprt import Sprt, sprt
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.runtime import sharding, terminal

DEFAULT_GAMES = 200
LOADING = "loading the players"


class Contest(NamedTuple):
    """Two players on one board, A first, and their names in reports."""

    game: Game
    players: tuple[Player | Engine, Player | Engine]
    names: tuple[str, str]


def play(options: MatchOptions) -> None:
    """Plays the match that the options of `alphagat match` describe.

    Progress goes to standard error, the result to standard output.

    Raises:
      UserError: an option is wrong, or a player is not available; nothing was played or written.
    """
    limits = read_limits(options)
    simulations, symmetries = options.simulations or (None,), options.symmetries or (1,)
    board = options.board or default_board(options.a, options.b)
    if board is None:
        raise UserError("--board is missing, and neither player is a run that has one; name one, such as --board hex:5")
    game = make_game(board)
    settings = read_settings(options, game)
    console = Console()
    with contextlib.ExitStack() as stack:
        with terminal.status(LOADING):
            a, b = (
                _open(make_contender(game, name, simulations[end], limits, options.seed, symmetries[end]), stack)
                for name, end in ((options.a, 0), (options.b, -1))
            )
        contest = Contest(game, (a, b), (_full_name(options.a, a), _full_name(options.b, b)))
        if game.num_players == 1:
            console.print(match_report.solo_table(game, contest.names, play_solo(contest, settings)))
            return
        result, test = play_duel(contest, settings, Console(stderr=True))
    console.print(match_report.match_table(game, contest.names, result))
    for line in match_report.notes(contest.names, result, test):
        console.print(line, markup=False, soft_wrap=True)


def evaluate(
    run: str, iteration: int | None, board: str | None, simulations: int | None, opponent: str, settings: Settings
) -> str:
    """Plays the match of `alphagat evaluate`, and returns its result in one line.

    Args:
      run: the player, as in `alphagat.load`, which also describes `iteration` and `board`.
      simulations: per move of the player; None: as in the run's evaluations.

    Raises:
      UserError: the run, the checkpoint or the opponent is not available; nothing was played.
    """
    with contextlib.ExitStack() as stack:
        with terminal.status(LOADING):
            agent = load(run, iteration, board)
            player = agent.player(simulations)
            rival = _open(make_contender(agent.game, opponent, None, EngineLimits(), settings.seed), stack)
        contest = Contest(agent.game, (player, rival), (_full_name(run, player), _full_name(opponent, rival)))
        if agent.game.num_players == 1:
            return match_report.solo_line(agent.game, contest.names, play_solo(contest, settings))
        result, _ = play_duel(contest, settings, Console(stderr=True))
    return match_report.match_line(agent.game, contest.names, result)


def play_solo(contest: Contest, settings: Settings) -> tuple[Scores, Scores]:
    """Lets each player play a one-player game alone, with the same random keys.

    Raises:
      UserError: a player is an engine, which plays games for two players only.
    """
    a, b = contest.players
    if isinstance(a, Engine) or isinstance(b, Engine):
        raise UserError(f"board {contest.game.name}: engines play games for two players only; use another player")
    num_games = settings.num_games or DEFAULT_GAMES
    key, mesh = jax.random.key(settings.seed), sharding.make_mesh(0)
    with terminal.status("compiling, then playing"):
        return play_alone(contest.game, a, num_games, key, mesh), play_alone(contest.game, b, num_games, key, mesh)


def play_duel(contest: Contest, settings: Settings, console: Console) -> tuple[MatchResult, Sprt | None]:
    """Plays each opening with both colours, until the openings are used up or the sequential test is decided.

    The games of each part are written to `settings.out` as soon as the part ends.
    """
    with terminal.status("drawing the openings"):
        openings = _draw_openings(contest.game, settings)
    key, mesh = jax.random.key(settings.seed), sharding.make_mesh(0)
    parts: list[MatchResult] = []
    test = None
    text = TextColumn("{task.description}", markup=False)
    columns = text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("compiling, then playing", total=2 * len(openings.actions))

        def show(over: int) -> None:
            if over and not parts:
                progress.update(task, description="games")
            progress.update(task, completed=sum(part.num_games for part in parts) + over)

        series = Series(
            contest.game,
            *contest.players,
            openings,
            key,
            mesh,
            lambda line: console.print(line, markup=False, soft_wrap=True),
            show if console.is_terminal else None,
        )
        for part_openings, part in series.play(settings.part_size):
            parts.append(part)
            _write_games(contest, settings, part_openings, part)
            so_far = join(parts)
            progress.update(task, completed=so_far.num_games, description=f"{contest.names[0]}: {so_far.score:.1%}")
            if settings.sprt is not None:
                test = sprt(so_far.pair_scores, *settings.sprt)
                if test.verdict != "undecided":
                    break
    return join(parts), test


def _open(player: Player | Engine, stack: contextlib.ExitStack) -> Player | Engine:
    """Returns the player; the stack closes an engine."""
    return stack.enter_context(player) if isinstance(player, Engine) else player


def _full_name(word: str, player: Player | Engine) -> str:
    """Returns the player's name, preceded by the word on the command line if they differ. Bytes that are not UTF-8 are
    replaced, since files of games have none.
    """
    name = player.name if player.name == word else f"{word} ({player.name})"
    return name.encode(errors="replace").decode()


def _draw_openings(game: Game, settings: Settings) -> Openings:
    num_openings = None if settings.num_games is None else settings.num_games // 2
    if settings.opening_plies is not None:
        return openings_after(game, settings.opening_plies, settings.seed, num_openings)
    return distinct_openings(game, num_openings or DEFAULT_GAMES // 2, settings.seed)


def _write_games(contest: Contest, settings: Settings, openings: Openings, part: MatchResult) -> None:
    if settings.out is not None:
        texts = [to_text(record) for record in records_of(contest.game, contest.names, openings, part)]
        with settings.out.open("a", encoding="utf-8") as file:
            file.writelines(texts)
