// Command fakeengine is a llama-server for fault injection: see package
// fakeengine.
package main

import (
	"os"

	"github.com/1bit-systems/pkg/internal/fakeengine"
)

func main() { os.Exit(fakeengine.Main(os.Args[1:], os.Getenv, os.Stderr, os.Exit)) }
