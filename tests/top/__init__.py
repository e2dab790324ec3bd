"""Tests of the live screen."""
