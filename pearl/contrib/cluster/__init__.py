"""Work on clusters: an executor on Ray, plans as columns of tables, rows of runs as Parquet files at an address."""
