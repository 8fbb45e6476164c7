package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/etcdshift/etcdshift/internal/render"
)

var errNoTerminal = errors.New("standard input is no terminal to ask on")

// askHidden reads a line from the terminal without echo.
func askHidden(c *cli.Context, prompt string) (string, error) {
	in, is := c.App.Reader.(*os.File)
	if !is || !render.IsTerminal(in) {
		return "", errNoTerminal
	}
	terminal := int(in.Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	fmt.Fprint(c.App.ErrWriter, prompt)
	defer fmt.Fprintln(c.App.ErrWriter)
	type answer struct {
		line []byte
		err  error
	}
	asked := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(terminal)
		asked <- answer{line, err}
	}()
	select {
	case a := <-asked:
		return string(a.line), a.err
	case <-c.Context.Done(): // the process ends; otherwise the read would keep waiting
		return "", errors.Join(c.Context.Err(), term.Restore(terminal, before))
	}
}
