"""UCT written again, slowly and without arrays, on the solvers' own rules: the reference for the batched one."""

import math
import random


class Node:
    def __init__(self, position, empty, generator):
        self.position, self.children, self.visits, self.sums = position, {}, {}, {}
        self.untried = list(empty)
        generator.shuffle(self.untried)


class Reference:
    """Searches one position of a solver's board: two players who alternate, one stone a move."""

    def __init__(self, solver, seed):
        self.solver, self.random = solver, random.Random(seed)

    def play(self, position, action):
        """Returns the next position, and the mover's result, None while the game goes on."""
        player = (position[0] | position[1]).bit_count() % 2
        stones = list(position)
        stones[player] |= 1 << action
        after = tuple(stones)
        if self.solver.has_won(player, stones[player]):
            return after, 1
        return after, None if self.empty(after) else 0

    def empty(self, position):
        return [cell for cell in range(self.solver.num_cells) if not (position[0] | position[1]) >> cell & 1]

    def simulate(self, node):
        """Returns the result for the player to move at the node."""
        if node.untried:
            action = node.untried.pop()
            after, result = self.play(node.position, action)
            if result is None:
                node.children[action] = Node(after, self.empty(after), self.random)
                result = -self.roll_out(after)
        else:
            total = sum(node.visits.values())
            action = max(
                node.visits,
                key=lambda a: (
                    (node.sums[a] / node.visits[a] + 1) / 2 + 1.4 * math.sqrt(math.log(total) / node.visits[a]),
                    self.random.random(),
                ),
            )
            if action in node.children:
                result = -self.simulate(node.children[action])
            else:
                result = self.play(node.position, action)[1]
        node.visits[action] = node.visits.get(action, 0) + 1
        node.sums[action] = node.sums.get(action, 0) + result
        return result

    def roll_out(self, position):
        sign = 1
        while True:
            position, result = self.play(position, self.random.choice(self.empty(position)))
            if result is not None:
                return sign * result
            sign = -sign

    def search(self, position, num_simulations):
        """Returns visits and mean results per cell of the board."""
        root = Node(position, self.empty(position), self.random)
        for _ in range(num_simulations):
            self.simulate(root)
        visits = [root.visits.get(cell, 0) for cell in range(self.solver.num_cells)]
        means = [root.sums.get(cell, 0) / max(1, root.visits.get(cell, 0)) for cell in range(self.solver.num_cells)]
        return visits, means
