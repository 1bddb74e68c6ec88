"""Files → pictures and pages. Nothing here calls a model or changes what it reads."""
