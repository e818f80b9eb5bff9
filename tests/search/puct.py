"""PUCT in plain Python, several leaves at a time: what `search.growing_search` is compared with."""

import dataclasses
import functools
import math

import jax
import numpy as np

KEY = jax.random.key(0)


@dataclasses.dataclass
class Node:
    """One position; `returns[a]` lists what the simulations through `a` brought to the player to move."""

    state: object
    prior: dict = dataclasses.field(default_factory=dict)
    value: float = 0.0
    children: dict = dataclasses.field(default_factory=dict)
    returns: dict = dataclasses.field(default_factory=dict)
    on_their_way: dict = dataclasses.field(default_factory=dict)


@functools.cache
def _compiled(game, evaluate):
    @jax.jit
    def one(state):
        evaluation = evaluate(None, jax.tree.map(lambda x: x[None], state))
        return evaluation.prior_logits[0], evaluation.value[0], state.legal_action_mask

    return jax.jit(game.step), one


def grow(game, evaluate, state, num_simulations, num_leaves, exploration=1.25, reduction=0.2):
    """Returns the root after so many simulations, made in rounds of at most `num_leaves`."""
    step, one = _compiled(game, evaluate)

    def open_node(state):
        node = Node(jax.tree.map(np.asarray, state))
        if not state.terminated:
            logits, value, legal = (np.asarray(x, np.float64) for x in one(state))
            weights = {int(a): math.exp(logits[a]) for a in np.flatnonzero(legal)}
            node.prior = {a: weight / sum(weights.values()) for a, weight in weights.items()}
            node.value = float(value)
            node.returns = {a: [] for a in node.prior}
            node.on_their_way = dict.fromkeys(node.prior, 0)
        return node

    def best(node):
        num = {a: len(node.returns[a]) + node.on_their_way[a] for a in node.prior}
        everything = [x for found in node.returns.values() for x in found]
        total = 1 + sum(num.values())
        first = (node.value + sum(everything)) / (1 + len(everything))
        first -= reduction * math.sqrt(sum(p for a, p in node.prior.items() if num[a]))
        rate = exploration + math.log((1 + total + 19652) / 19652)

        def score(a):
            mean = np.mean(node.returns[a]) if node.returns[a] else first
            return mean + rate * node.prior[a] * math.sqrt(total) / (1 + num[a])

        return max(node.prior, key=score)

    root, done = open_node(state), 0
    while done < num_simulations:
        paths, new = [], {}
        for _ in range(min(num_leaves, num_simulations - done)):
            node, path = root, []
            while True:
                action = best(node)
                node.on_their_way[action] += 1
                path.append((node, action))
                child = node.children.get(action)
                if child is None or child.state.terminated:
                    break
                node = child
            edge = (id(node), action)
            if edge not in new or node.children.get(action) is not None:
                paths.append(path)
                new[edge] = path
        for path in paths:
            node, action = path[-1]
            if action not in node.children:
                node.children[action] = open_node(step(node.state, action, KEY))
        for path in paths:
            node, action = path[-1]
            child = node.children[action]
            value, player = child.value, int(child.state.current_player)
            if child.state.terminated:
                player = int(node.state.current_player)
                value = float(child.state.rewards[player])
            for node, action in path:
                node.returns[action].append(value if int(node.state.current_player) == player else -value)
        done += len(paths)
        _forget(root)
    return root


def _forget(node):
    """Ends the round: nothing is on its way."""
    node.on_their_way = dict.fromkeys(node.on_their_way, 0)
    for child in node.children.values():
        _forget(child)
