//go:build tools

// Package plugins names the programs that `go mod tidy` shall find the dependencies of.
package plugins

import (
	_ "sigs.k8s.io/scheduler-plugins/cmd/controller"
	_ "sigs.k8s.io/scheduler-plugins/cmd/scheduler"
)
