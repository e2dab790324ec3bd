"""What each store promises, as tests. A model and a client of a real service pass the same.

harness     what a suite needs of whoever brings a store
broker      of `IBroker`
rows        of `IRows`
objects     of `IObjects`
"""
