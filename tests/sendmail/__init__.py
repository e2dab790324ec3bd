"""Tests of `mailismus.sendmail`."""
