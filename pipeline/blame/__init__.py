"""Who made whom wait for a broker's handler threads: each request's queue time, divided among the requests that held them meanwhile."""
