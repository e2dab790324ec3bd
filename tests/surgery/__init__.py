"""Tests of acts on a stopped queue."""
