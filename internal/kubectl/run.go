package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
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

// FailedError is the error of a failed kubectl command.
type FailedError struct {
	Text  string // as printed by kubectl; "" if the answer is no
	Usage bool   // the command line is wrong
}

func (e *FailedError) Error() string { return e.Text }

// UsageError is a command line error.
type UsageError struct {
	error
	Similar string // a command similar to an unknown word, or ""
}

func (e UsageError) Unwrap() error { return e.error }

// ErrNeeded is returned by start for a run that stops when it needs a server. Help and refusals
// need none.
var ErrNeeded = errors.New("a server is needed")

// session is one run of kubectl.
type session struct {
	ctx      context.Context
	start    func(context.Context) (*serve.Server, error)
	listener *pipes
	out      *output
	lines    *lines
	notes    io.Writer // for warnings

	mu     sync.Mutex // held during the server start
	served chan error // error of the ended server; nil before the start
	failed error      // error of start
}

// kubectlGrowth is the growth of the heap between two collections, in percent, as in kubectl.
// kubectl keeps all objects: at the percentage of this program, collections take a tenth of a run.
const kubectlGrowth = 100

// Run runs a kubectl command line on the server created by start, if the command needs one. The
// server has the address localhost; quiet suppresses warnings. An error is a FailedError, a
// RefusedError, a UsageError, or comes from start, ctx or the output.
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
			<-s.served // the snapshot is no longer read
		}
		err = cmp.Or(ctx.Err(), s.failed, err)
	}()
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(kubectlGrowth))
	}
	ended := make(chan error, 1)
	go func() { ended <- s.run(streams, args) }()
	select {
	case err = <-ended:
		if out.hidden {
			fmt.Fprintln(s.notes, "secret values are redacted; --show-secrets before SNAPSHOT shows them")
		}
		return cmp.Or(err, out.complete(), errs.Close())
	case <-ctx.Done(): // kubectl may be reading a terminal or running a slow template: wait a moment for its end
		select {
		case <-ended:
		case <-time.After(time.Second / 4):
		}
		return ctx.Err()
	}
}

// run runs a command line, and returns kubectl's fatal errors, which would exit the process, as
// errors. It also recovers panics: kubectl trusts a server to set fields that an object in a file
// may lack.
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
