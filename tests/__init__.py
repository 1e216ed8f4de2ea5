"""A package with this file, since a library of Crafter installs one of the same name, which Python would prefer."""
