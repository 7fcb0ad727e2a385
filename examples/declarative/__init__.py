"""Topics in Spark Declarative Pipelines."""
