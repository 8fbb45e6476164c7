// Etcdshift reads, changes and proves etcd snapshots of Kubernetes clusters, without a server.
package main

import (
	"io"
	"log"
	"os"

	_ "github.com/etcdshift/etcdshift/cmd/etcdshift/heap"
	"github.com/etcdshift/etcdshift/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // libraries log the content of our errors
	os.Exit(cli.Main(os.Stdout, os.Stderr))
}
