"""What the Makefile's targets do: `python -m muster_dev setup | lock | check`, with tools/ on the module path."""
