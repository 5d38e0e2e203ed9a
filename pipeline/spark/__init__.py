"""The pipeline on Spark: the same code as on one machine, run by Spark's workers. Needs pyspark, which nothing else of the pipeline does."""
