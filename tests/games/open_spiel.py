"""Our recorded games, replayed by OpenSpiel where it numbers actions as we do."""

import numpy as np

from alphagat.games.contract.random_games import RandomGames


def assert_plays_alike(games: RandomGames, spiel, num_games: int) -> None:
    """Compares the player to move and the legal actions before every move, and the end and the result of each game."""
    for game in range(num_games):
        state = spiel.new_initial_state()
        for ply in range(games.length(game)):
            assert not state.is_terminal()
            assert state.current_player() == games.players[ply, game]
            assert state.legal_actions() == np.flatnonzero(games.legal[ply, game]).tolist()
            state.apply_action(int(games.actions[ply, game]))
        assert state.is_terminal()
        assert state.returns() == games.rewards[games.length(game), game].tolist()


def count_actions(games: RandomGames, action: int, num_games: int) -> int:
    """Returns how often `action` was played before the games ended."""
    return sum(int((games.actions[: games.length(game), game] == action).sum()) for game in range(num_games))
