"""Draws our dashboards for the documentation; see ``__main__``. ``prometheus`` asks what a panel asks."""
