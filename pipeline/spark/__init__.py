"""
The pipeline on Spark: the same code as on one machine, run by Spark's workers.

It needs pyspark, which no other part of the pipeline does.

`replay_frame` replays the requests of any DataFrame.
"""

from .shuffled import replay_frame

__all__ = ["replay_frame"]
