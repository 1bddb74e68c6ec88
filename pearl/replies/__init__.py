"""The text of a model's reply → a typed value, or the reason why there is none."""
