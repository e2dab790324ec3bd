"""Tests of acts."""
