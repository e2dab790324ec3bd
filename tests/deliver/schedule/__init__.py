"""Tests of the schedule: each rule by name, random runs against slow plain code, and mutants that each rule's test catches.

jobs      jobs and next hops
world     hosts in states as wanted, for `choice`
plain     the choice as slow plain code, written from the rules and not from the product
desk      `Schedule` with an owner that plays all sessions
mutants   changes of the product's text that the tests must notice
"""
