"""The programs of the Makefile: `python -m muster_dev setup | lock | check`, with tools/ on the module path."""
