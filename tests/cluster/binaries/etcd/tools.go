//go:build tools

// Package etcd names the program that `go mod tidy` shall find the dependencies of.
package etcd

import _ "go.etcd.io/etcd/server/v3"
