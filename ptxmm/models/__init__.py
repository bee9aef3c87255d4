"""Data only: the shipped models (``.cat``) and their index."""
