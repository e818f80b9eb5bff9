"""Learner: the loss, the optimizers, and the update whose gradients are averaged over the `data` axis."""
