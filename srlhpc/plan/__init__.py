"""Turns a spec into ranks, roles and endpoints. Pure."""
