"""Constraints for decoders, made from an `ActionLibrary`: grammars, JSON Schemas and reply formats."""
