"""The text of a model's reply → a typed value, or the reason why it has none."""
