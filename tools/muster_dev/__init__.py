"""The code of the Makefile's targets: `python -m muster_dev setup | lock | check`, with tools/ on the module path."""
