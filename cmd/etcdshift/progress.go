package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// progress shows on a terminal that work goes on, unless -q was given: the stage and how long it has taken. What it
// returns begins a stage and gives back what ends it.
func progress(c *cli.Context) (begin func(stage string) (end func())) {
	if f, ok := c.App.ErrWriter.(*os.File); ok && term.IsTerminal(int(f.Fd())) && !c.Bool("quiet") {
		return func(stage string) func() { return showStage(f, printable(stage), time.Second) }
	}
	return func(string) func() { return func() {} }
}

// showStage writes the stage's line at each interval until the result is called, which takes it away.
func showStage(w io.Writer, stage string, every time.Duration) (end func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		start, shown := time.Now(), false
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-tick.C:
				shown = true
				fmt.Fprintf(w, "\r\x1b[K%s: %s", stage, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-gone }
}
