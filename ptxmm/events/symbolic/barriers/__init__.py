"""Barriers and mbarriers: their events, and every way in which the paths of the threads meet there."""
