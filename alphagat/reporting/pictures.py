"""Sample games and attention as HTML."""

import html
from collections.abc import Sequence

import numpy as np

from alphagat.agents.agent import Agent
from alphagat.agents.attention import attention_blocks, make_attention
from alphagat.games.base import Game
from alphagat.games.batches import batch_of_one
from alphagat.monitoring.catalogue import points
from alphagat.reporting.overlays import attention_shapes
from alphagat.reporting.page import section
from alphagat.reporting.samples import NUM_SIMULATIONS, Moment, SampleGame, play_samples

NUM_GAMES = 2
MAX_BOARDS = 30  # per game; longer games are shown at equal steps
VIEWER = (
    '<div class=viewer hidden><figure class=shown></figure><p><button value="-1" aria-label="Back">‹</button>'
    '<input type="range" min="0" value="0" aria-label="Position">'
    '<button value="1" aria-label="Forward">›</button></p></div>'
)
MAX_EDGES = 120  # per attention picture; the strongest


def draw_none(reason: str) -> str:
    """Returns the section shown when there are no pictures."""
    return section("Sample games", reason, "")


def draw_checkpoint(agents: Sequence[Agent]) -> str:
    """Returns the sections with sample games and attention, for one network on at most `NUM_GAMES` boards.

    Raises:
      UserError: a board has too few openings.
    """
    samples = [(agent, sample) for agent in agents for sample in play_samples(agent, NUM_GAMES // len(agents))]
    games = "".join(_draw_game(agent.game, sample) for agent, sample in samples)
    agent, sample = samples[-1]
    note = f"The network of iteration {agent.iteration} with {NUM_SIMULATIONS} simulations per move"
    if agent.game.num_players == 2:
        note += (
            f" against itself. Under each position, its value for {agent.game.player_colours[0][0]}: 1 wins, -1 loses."
        )
    else:
        note += ". Under each position, the expected further points; under the final one, the points of the game."
    shown = section("Sample games", note, games)
    moment = sample.moments[len(sample.moments) // 2]
    note = f"On {agent.game.name} after {moment.ply} plies, averaged over the heads of each block. "
    note += "A wedge points from a node to the node it attends to; a disc is a node's attention to itself."
    attention = _draw_attention(agent, moment)
    return shown + (section("Attention", note, attention) if attention else "")


def _draw_game(game: Game, sample: SampleGame) -> str:
    """Returns a game as one figure per position, with the value under each, and a viewer that a script fills."""
    rows = np.unique(np.linspace(0, len(sample.moments) - 1, MAX_BOARDS).round().astype(int))
    figures = "".join(_draw_moment(game, sample.moments[row]) for row in rows)
    skipped = f", {len(rows)} of {len(sample.moments)} positions" if len(rows) < len(sample.moments) else ""
    head = f"<h3>{game.name}: <em>{html.escape(sample.result)}</em>{skipped}</h3>"
    return f"<div class=game>{head}{VIEWER}<div class=boards>{figures}</div></div>"


def _draw_moment(game: Game, moment: Moment) -> str:
    move = f"<span><i>{moment.ply}.</i> {html.escape(moment.move)}</span>"
    return f"<figure>{game.render_svg(moment.state)}<figcaption>{move}{_value(game, moment)}</figcaption></figure>"


def _value(game: Game, moment: Moment) -> str:
    """Returns the value of player 0, with a bar for games with two players."""
    if game.num_players == 1:
        return f"<b>{points(moment.value)}</b>"
    share = 50 * (1 + min(max(moment.value, -1.0), 1.0))
    return f'<b>{moment.value:+.2f}</b><span class=bar style="--share:{share:.1f}%"></span>'


def _draw_attention(agent: Agent, moment: Moment) -> str:
    """Returns one figure per block with the attention along the edges of the board, averaged over heads.

    Empty if the network has no attention or the game has no node places.
    """
    blocks, places = attention_blocks(agent.config.network), agent.game.node_places(moment.state)
    if not blocks or np.isnan(places).all():
        return ""
    weights = np.asarray(make_attention(agent)(agent.params, batch_of_one(moment.state)))[0].mean(axis=1)  # [blocks, E]
    topology, board = agent.game.topology, agent.game.render_svg(moment.state).removesuffix("</svg>")
    own = topology.senders == topology.receivers
    figures = []
    for block, each in zip(blocks, weights):
        shapes = attention_shapes(agent.game, moment.state, each, MAX_EDGES)
        caption = f"<span>block {block + 1}</span><b>{each[own].mean():.0%} on itself</b>"
        picture = f'{board}<g class="looks">{"".join(shapes)}</g></svg>'
        figures.append(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>")
    return f'<div class="boards attention">{"".join(figures)}</div>'
