"""
The pages for people, at `/` (`serving`) and `/runbooks/` (`runbooks`).

The JSON API shares their queries (`query`).
"""
