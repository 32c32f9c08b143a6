//go:build tools

// Package helm names the program that `go mod tidy` shall find the dependencies of.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
