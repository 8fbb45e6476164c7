package apiservers

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"runtime/debug"

	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/serve"
)

// PartName is the name of Part among the parts of a sandbox.
const PartName = "apiserver"

// partConfig is the configuration of Part.
type partConfig struct {
	Store  Store  `json:"store"`
	Socket string `json:"socket"`
}

// Part is what Store.Start starts; it must be among the parts of sandbox.Main.
func Part(ctx context.Context, config []byte) error {
	var c partConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	// Lists make much garbage: collecting it was a third of the CPU time.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	l, err := net.Listen("unix", c.Socket)
	if err != nil {
		return err
	}
	return c.Store.Serve(ctx, l)
}

// Server is an API server in a sandbox.
type Server struct {
	Config *rest.Config // for clients that may do anything
	*sandbox.Process
	dir      string         // of a kube-apiserver
	endpoint serve.Endpoint // of a kube-apiserver
}

// Start runs Serve as a part of a sandbox, in whose folder its socket is.
func (s Store) Start(ctx context.Context, box *sandbox.Sandbox) (*Server, error) {
	socket := filepath.Join(box.Path(), "api.sock")
	p, err := box.Start(ctx, "apiextensions-apiserver", PartName, partConfig{s, socket})
	if err != nil {
		return nil, err
	}
	return &Server{Config: clientOf(&net.UnixAddr{Net: "unix", Name: socket}), Process: p}, nil
}

// Ready is Wait, which ends with the server too.
func (s *Server) Ready(ctx context.Context) (Serving, error) {
	ctx, cancel := s.While(ctx)
	defer cancel()
	serving, err := Wait(ctx, s.Config)
	return serving, sandbox.Explain(err, s.Process)
}
