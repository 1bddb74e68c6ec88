"""The text of a model's reply → a typed value, or the reason why it has none.

One normaliser stands before all readers (`normaliser`), one test of texts that are no reply at all
(`unusable`), and one reader for each kind of reply: `typed` for a value of a step, `items` for
values of numbered items.
"""
