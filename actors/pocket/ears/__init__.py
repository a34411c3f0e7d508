"""Ears of `pocket`: from the samples of a clip to a caption and to letters. See :mod:`.listen` and :mod:`.answer`."""
