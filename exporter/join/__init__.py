"""Joins the tables of the sources with the configured limits to a snapshot."""
