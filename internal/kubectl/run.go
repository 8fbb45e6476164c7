package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/serve"
)

// FailedError is how a command of kubectl failed.
type FailedError struct {
	Text  string // as kubectl prints it; "" where the answer is no
	Usage bool   // the command line is wrong
}

func (e *FailedError) Error() string { return e.Text }

// UsageError is an error about a command line.
type UsageError struct {
	error
	Similar string // the command that an unknown word is like; "" for none
}

func (e UsageError) Unwrap() error { return e.error }

// ErrNeeded is what start returns for a run that does not go on where a server is needed. Help and
// refusals need none.
var ErrNeeded = errors.New("a server is needed")

// session is one run of kubectl.
type session struct {
	ctx      context.Context
	start    func(context.Context) (*serve.Server, error)
	listener *pipes
	out      *output
	lines    *lines
	notes    io.Writer // of warnings

	mu     sync.Mutex // held while the server starts
	served chan error // what the server ended with; nil before it is started
	failed error      // what start failed with
}

// Run runs a command line of kubectl on the server that start makes, if the command needs one. The
// server is on the address localhost; quiet leaves warnings out. An error is a FailedError, a
// RefusedError, a UsageError, or that of start, ctx or the output.
func Run(ctx context.Context, start func(context.Context) (*serve.Server, error), streams genericiooptions.IOStreams,
	quiet bool,
	args []string) (err error) {
	inner, cancel := context.WithCancel(ctx)
	out := newOutput(inner, streams.Out)
	errs := render.NewEscaper(streams.ErrOut)
	streams.Out, streams.ErrOut = out, errs
	s := &session{ctx: inner, start: start, listener: newPipes(inner), out: out, notes: errs}
	if quiet {
		s.notes = io.Discard
	}
	defer func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.served != nil {
			<-s.served // nothing reads the snapshot any more
		}
		err = cmp.Or(ctx.Err(), s.failed, err)
	}()
	ended := make(chan error, 1)
	go func() { ended <- s.run(streams, args) }()
	select {
	case err = <-ended:
		if out.hidden {
			fmt.Fprintln(s.notes, "secret values are redacted; --show-secrets before SNAPSHOT shows them")
		}
		return cmp.Or(err, out.complete(), errs.Close())
	case <-ctx.Done(): // kubectl may be reading a terminal, or its template may take hours: it gets a moment to end
		select {
		case <-ended:
		case <-time.After(time.Second / 4):
		}
		return ctx.Err()
	}
}

// run runs a command line; what kubectl calls fatal, which would end the process, is returned. So
// is a panic of kubectl, which trusts the server to fill fields that an object in a file may lack.
func (s *session) run(streams genericiooptions.IOStreams, args []string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *FailedError:
			err = r
		default:
			err = &FailedError{Text: fmt.Sprintf("error: kubectl stopped at an object it cannot show: %v", r)}
		}
	}()
	cmdutil.BehaviorOnFatal(func(text string, _ int) {
		panic(&FailedError{strings.TrimSuffix(text, "\n"), isUsage(text)})
	})
	warnings := rest.NewWarningWriter(s.notes, rest.WarningWriterOptions{Deduplicate: true})
	s.lines = &lines{next: &http.Transport{DialContext: s.listener.DialContext, DisableCompression: true}}
	root := newRoot(newClient(s.lines, warnings), streams, s.serve)
	root.SetArgs(args)
	if err = root.ExecuteContext(s.ctx); err != nil {
		return UsageError{err, similar(root, args)}
	}
	if n := warnings.WarningCount(); n > 0 && cmdutil.GetFlagBool(root, warningsAsErrors) {
		return &FailedError{Text: fmt.Sprintf("error: %d warnings received", n)}
	}
	return nil
}

// serve starts the server.
func (s *session) serve(c *cobra.Command, _ []string) error {
	format := ""
	if f := c.Flags().Lookup("output"); f != nil {
		format, _, _ = strings.Cut(f.Value.String(), "=")
	}
	s.out.begin(format)
	s.lines.begin(c, format)
	if watch, err := c.Flags().GetBool("watch"); err == nil && watch {
		fmt.Fprintln(s.notes, "warning: a snapshot does not change: --watch shows nothing more")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return err
	}
	server, err := s.start(s.ctx)
	if err != nil {
		s.failed = err
		return err
	}
	s.served = make(chan error, 1)
	go func() { s.served <- server.Run(s.ctx, s.listener) }()
	return nil
}
