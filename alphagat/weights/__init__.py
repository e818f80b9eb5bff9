"""Networks that come with the package, as `python -m alphagat.export` wrote them."""
