"""`ActionLibrary` → constraints for decoders: grammars, JSON Schemas and reply formats."""
