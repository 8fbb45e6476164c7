package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve a snapshot to kubectl, k9s or Headlamp, read-only",
		ArgsUsage: "SNAPSHOT...",
		Description: `etcdshift serve before.db
etcdshift serve --kubeconfig kubeconfig before.db after.db
kubectl --kubeconfig kubeconfig --context after get pods -A`,
		UsageText: `Answers as a Kubernetes API server for the objects in SNAPSHOT, until it is interrupted. Each of
several snapshots has a context, named after the file. The server listens only on this machine, with TLS and a random
token; the kubeconfig contains both and is removed at the end.

Built-in kinds are served at their stored version, custom resources at the served versions of their
CustomResourceDefinition, without conversion by webhooks. Nothing can be changed: writes are refused with status 405,
and so are logs and exec. A watch returns the objects and no changes. Secrets are redacted, and still base64 as
clients expect; "helm list" needs --show-secrets.

--at serves an earlier state, if the snapshot still has it: API servers compact every few minutes.

Exit status: 1 could not serve, 2 usage, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "kubeconfig", Usage: "write a kubeconfig to the new file `FILE` (default: in a " +
				"temporary folder)"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0",
				Usage: "listen on `ADDRESS`; each additional snapshot has the next port"},
			&cli.StringFlag{Name: "unix", Usage: "listen on the Unix socket `PATH`, only for this user, without " +
				"TLS and token"},
			atFlag("serve"),
			showSecretsFlag()),
		Action: taking(runServe),
	}
}

func runServe(c *cli.Context, args []string) error {
	switch {
	case c.IsSet("unix") && (c.IsSet("listen") || c.IsSet("kubeconfig") || len(args) > 1):
		return usagef(commandPath(c), "--unix serves one snapshot, without --listen and --kubeconfig")
	case c.IsSet("at") && len(args) > 1:
		return usagef(commandPath(c), "--at takes one snapshot")
	}
	if _, _, err := net.SplitHostPort(c.String("listen")); err != nil {
		return usagef(commandPath(c), "--listen is %q; it takes an address such as 127.0.0.1:8443", c.String("listen"))
	}
	return readSnapshots(c, args, func(files []*opened) error {
		ctx, cancel := context.WithCancel(c.Context)
		defer cancel()
		r := &running{c: c, names: map[string]bool{}}
		for _, o := range files {
			if err := r.open(ctx, o); err != nil {
				return errors.Join(err, r.close())
			}
		}
		return errors.Join(r.run(ctx), r.close())
	})
}

// running holds the servers of one run.
type running struct {
	c         *cli.Context
	listeners []net.Listener
	servers   []*serve.Server
	endpoints []serve.Endpoint
	lines     []string        // to print: the address of each server
	names     map[string]bool // of contexts
	removes   []func() error  // of the socket, of the kubeconfig and its temporary folder
}

// open creates the server of a snapshot, and listens.
func (r *running) open(ctx context.Context, o *opened) error {
	if err := o.readAt(r.c); err != nil {
		return err
	}
	l, err := r.listen()
	if err != nil {
		return err
	}
	r.listeners = append(r.listeners, l)
	path := o.Snapshot().Path()
	e := serve.Endpoint{Name: r.name(path), Address: clientAddress(l), Credentials: &serve.Credentials{}}
	cfg := serve.Config{Address: e.Address, Secrets: r.c.Bool("show-secrets"), Report: func(line string) {
		fmt.Fprintf(r.c.App.ErrWriter, "%s: %s\n", render.Printable(path), render.Printable(line))
	}}
	if !r.c.IsSet("unix") {
		host, _, _ := net.SplitHostPort(r.c.String("listen"))
		if e.Credentials, err = serve.NewCredentials(host); err != nil {
			return err
		}
		cfg.Token, r.listeners[len(r.listeners)-1] = e.Token, e.Listener(l)
	} else {
		cfg.Address = "localhost:80"
	}
	go func() { // the digest takes longer than the start of the server
		if _, err := o.Snapshot().Digest(ctx); errors.Is(err, snapshot.ErrDigest) {
			warn(r.c, err.Error())
		}
	}()
	server, err := serve.New(ctx, o.Reader, cfg)
	if err != nil {
		return err
	}
	revision, err := o.Revision(ctx)
	if err != nil {
		return err
	}
	r.servers, r.endpoints = append(r.servers, server), append(r.endpoints, e)
	r.lines = append(r.lines, fmt.Sprintf("%s at revision %d: %s", render.Printable(path), revision, r.endpointText(e)))
	return nil
}

// listen opens the next listener.
func (r *running) listen() (net.Listener, error) {
	if path := r.c.String("unix"); path != "" {
		return r.listenUnix(path)
	}
	host, port, _ := net.SplitHostPort(r.c.String("listen"))
	if n, err := strconv.Atoi(port); err == nil && n > 0 {
		port = strconv.Itoa(n + len(r.listeners))
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && len(r.listeners) == 0 {
		warn(r.c, "other machines can reach this server; who has its token reads the snapshots")
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// listenUnix opens a socket. At the end Go would remove any file of this name.
func (r *running) listenUnix(path string) (net.Listener, error) {
	if strings.HasPrefix(path, "@") { // an abstract socket, open to all users
		path = "./" + path
	}
	l, err := listenUnix(path)
	if err != nil {
		return nil, err
	}
	if socket, is := l.(*net.UnixListener); is {
		socket.SetUnlinkOnClose(false)
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	r.atEnd(path, func() error { return publish.Remove(path, made) })
	return l, nil
}

// clientAddress returns the address of a listener for clients on this machine.
func clientAddress(l net.Listener) string {
	tcp, is := l.Addr().(*net.TCPAddr)
	if is && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return l.Addr().String()
}

// name returns a new context name for a file: the file name without extensions.
func (r *running) name(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	name = cmp.Or(name, "snapshot")
	for i := 2; r.names[name]; i++ {
		base, _, _ := strings.Cut(filepath.Base(path), ".")
		name = fmt.Sprintf("%s-%d", cmp.Or(base, "snapshot"), i)
	}
	r.names[name] = true
	return name
}

// endpointText describes how to reach a server.
func (r *running) endpointText(e serve.Endpoint) string {
	if r.c.IsSet("unix") {
		return "unix://" + render.Printable(e.Address)
	}
	return "https://" + e.Address + ", context " + render.Printable(e.Name)
}

// run serves until interrupted.
func (r *running) run(ctx context.Context) error {
	if !r.c.IsSet("unix") {
		path, err := r.writeKubeconfig()
		if err != nil {
			return err
		}
		r.lines = append(r.lines, "export KUBECONFIG="+transform.ShellWord(path))
	}
	if _, err := fmt.Fprintln(r.c.App.Writer, strings.Join(r.lines, "\n")); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for i, server := range r.servers {
		all.Go(func() error { return server.Run(ctx, r.listeners[i]) })
	}
	return cmp.Or(all.Wait(), r.c.Context.Err()) // only an interrupt ends it
}

// atEnd schedules the removal of a created path at the end.
func (r *running) atEnd(path string, remove func() error) {
	r.removes = append(r.removes, func() error { return warnReplaced(r.c, path, remove()) })
}

// writeKubeconfig writes the kubeconfig, to a temporary folder without --kubeconfig.
func (r *running) writeKubeconfig() (path string, err error) {
	if path = r.c.String("kubeconfig"); path == "" {
		folder, err := os.MkdirTemp("", "etcdshift-serve-*")
		if err != nil {
			return "", err
		}
		made, err := os.Lstat(folder)
		if err != nil {
			return "", err
		}
		r.atEnd(folder, func() error { return publish.Remove(folder, made) })
		path = filepath.Join(folder, "kubeconfig")
	}
	written, err := writeKubeconfig(path, r.endpoints...)
	if err == nil {
		r.atEnd(path, written.Remove)
	}
	return path, err
}

// writeKubeconfig writes a kubeconfig for this user alone, never over another file.
func writeKubeconfig(path string, endpoints ...serve.Endpoint) (*publish.File, error) {
	text, err := serve.Kubeconfig(endpoints)
	if err != nil {
		return nil, err
	}
	f, err := publish.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Discard()
	if _, err := f.File().Write(text); err != nil {
		return nil, err
	}
	return f, f.Publish()
}

// warnReplaced turns publish.ErrReplaced into a warning.
func warnReplaced(c *cli.Context, path string, err error) error {
	if !errors.Is(err, publish.ErrReplaced) {
		return err
	}
	warn(c, fmt.Sprintf("%s was changed or replaced: it is not removed", path))
	return nil
}

// close closes the listeners and removes the files made for their clients.
func (r *running) close() error {
	for _, l := range r.listeners {
		_ = l.Close() // a second close is harmless
	}
	var errs []error
	for _, remove := range slices.Backward(r.removes) {
		errs = append(errs, remove())
	}
	return errors.Join(errs...)
}
