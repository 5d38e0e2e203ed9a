"""Simulations by seed: what a seed does is the same each time, and what must hold is looked at after each step."""
