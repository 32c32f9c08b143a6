//go:build tools

// Package kwok names the program that `go mod tidy` shall find the dependencies of.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
