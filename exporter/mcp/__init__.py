"""
What an assistant may ask a running exporter, by the Model Context Protocol; it can change nothing.

``tools`` declares the questions, ``answers`` asks the JSON API and bounds what comes back, ``server`` speaks the
protocol, with the extra ``mcp``.
"""
