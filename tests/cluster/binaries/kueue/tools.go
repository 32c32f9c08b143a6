//go:build tools

// Package kueue names the program that `go mod tidy` shall find the dependencies of.
package kueue

import _ "sigs.k8s.io/kueue/cmd/kueue"
