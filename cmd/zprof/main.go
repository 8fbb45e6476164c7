package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/storageversion"
)

func main() {
	f, _ := os.Create(os.Args[3])
	pprof.StartCPUProfile(f)
	defer pprof.StopCPUProfile()
	r, err := transform.Run(context.Background(), transform.Options{Command: "x", In: os.Args[1], Out: os.Args[2], DryRun: len(os.Args) > 4}, storageversion.New(storageversion.Options{}))
	fmt.Println(r.Outcome, r.Changes, err)
}
