"""
Culprits and victims of the wait for a broker's handler threads.

Queue times, divided among the requests that held them.
"""
