"""Learner: the loss, the optimizers, and the update, which averages gradients over the `data` axis."""
