"""What a store holds and how it refers to it: lists, maps and snapshots, made of objects.

Everything here turns values into immutable objects and back, through two functions that the caller
gives (`snapstore.model.wire`: Read and Put). Nothing here knows of engines, refs or names.
"""
