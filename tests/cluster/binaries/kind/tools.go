//go:build tools

// Package kind names the program that `go mod tidy` shall find the dependencies of.
package kind

import _ "sigs.k8s.io/kind"
