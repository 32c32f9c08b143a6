module muster.dev/cluster/pause

go 1.24
