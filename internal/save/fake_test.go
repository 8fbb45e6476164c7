package save

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// proxy forwards connections to a server, and cuts all connections after a number of bytes.
type proxy struct {
	url    string
	server string

	mu     sync.Mutex
	left   int64 // bytes until the cut
	cut    bool
	healed bool // cut only once
	conns  []net.Conn
}

func startProxy(t *testing.T, server string, bytes int64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{url: "http://" + l.Addr().String(), server: strings.TrimPrefix(server, "http://"), left: bytes}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.server)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			forward := func(to io.Writer, from net.Conn) {
				_, _ = io.Copy(to, from)
				_, _ = in.Close(), out.Close()
			}
			go forward(out, in)
			go forward(counted{in, p}, out)
		}
	}()
	return p
}

// counted is a connection to the client.
type counted struct {
	net.Conn
	p *proxy
}

func (c counted) Write(b []byte) (int, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.p.left -= int64(len(b)); c.p.left < 0 && !(c.p.cut && c.p.healed) {
		c.p.cut = true
		for _, conn := range c.p.conns {
			_ = conn.Close()
		}
		c.p.conns, c.p.left = nil, 1<<20
	}
	return c.Conn.Write(b)
}

// fake changes the answers of a real server.
type fake struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer

	status *pb.StatusResponse // instead of the real one
	ahead  int64              // added to the revision in the status
	stands bool               // sends no data
	empty  bool               // sends only parts without data
	drips  bool               // sends single bytes slowly
	old    bool               // refuses the download like etcd 3.5
	alone  bool               // has no connection to its leader
	parts  int                // ends the stream after this many parts
	drop   int                // drops this many bytes at the end
	flip   bool               // flips one bit
	more   bool               // sends data after the end
	text   bool               // sends text with a valid digest

	real *etcdtest.Server
}

// startFake starts a server and returns its URL.
func startFake(t *testing.T, real *etcdtest.Server, f fake) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.real = real
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, &f)
	pb.RegisterClusterServer(s, &f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

func (f *fake) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if f.status != nil {
		return f.status, nil
	}
	st, err := f.real.Client.Status(ctx, f.real.URL)
	if err != nil {
		return nil, err
	}
	st.Header.Revision += f.ahead
	return (*pb.StatusResponse)(st), nil
}

func (f *fake) MemberList(ctx context.Context, _ *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if f.alone {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	list, err := f.real.Client.MemberList(ctx)
	return (*pb.MemberListResponse)(list), err
}

func (f *fake) Snapshot(_ *pb.SnapshotRequest, out grpc.ServerStreamingServer[pb.SnapshotResponse]) error {
	ctx := out.Context()
	if f.old {
		return errors.New("auth: user name is empty")
	}
	if f.stands {
		<-ctx.Done()
		return ctx.Err()
	}
	for f.empty {
		if err := out.Send(&pb.SnapshotResponse{RemainingBytes: 1 << 20}); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	parts, err := f.stream(ctx)
	for at := 0; f.drips; at++ {
		if err := out.Send(&pb.SnapshotResponse{Blob: parts[0].Blob[at : at+1], RemainingBytes: 1 << 20}); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, p := range parts {
		if err := out.Send(p); err != nil {
			return err
		}
	}
	return err
}

// stream returns the changed parts of the real stream.
func (f *fake) stream(ctx context.Context) (parts []*pb.SnapshotResponse, err error) {
	in, err := pb.NewMaintenanceClient(f.real.Client.ActiveConnection()).Snapshot(ctx, &pb.SnapshotRequest{})
	for err == nil {
		var p *pb.SnapshotResponse
		if p, err = in.Recv(); err == nil {
			parts = append(parts, proto.CloneOf(p))
		}
	}
	if err == io.EOF {
		err = nil
	}
	last := parts[len(parts)-1]
	last.Blob = last.Blob[:max(0, len(last.Blob)-f.drop)]
	switch {
	case f.parts > 0:
		parts = parts[:f.parts]
	case f.flip:
		parts[2].Blob[100] ^= 4
	case f.more:
		parts = append(parts, parts...)
	case f.text:
		parts = textOf(1 << 20)
	}
	return parts, err
}

func TestRefused(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	status := func(change func(*pb.StatusResponse)) string {
		real, err := server.Client.Status(t.Context(), server.URL)
		require.NoError(t, err)
		st := proto.CloneOf((*pb.StatusResponse)(real))
		change(st)
		return startFake(t, server, fake{status: st})
	}
	ahead := status(func(st *pb.StatusResponse) { st.RaftIndex += 1001; st.RaftAppliedIndex += 1001 })
	other := "memberID:7  alarm:CORRUPT"
	for _, tc := range []struct {
		name      string
		want      error
		endpoints []string
	}{
		{"a learner", ErrLearner, []string{status(func(st *pb.StatusResponse) { st.IsLearner = true })}},
		{"no leader", ErrNoLeader, []string{status(func(st *pb.StatusResponse) { st.Leader = 0 })}},
		{"corrupt", ErrCorrupt, []string{status(func(st *pb.StatusResponse) {
			st.Header.MemberId, st.Errors = 7, []string{other}
		})}},
		{"corrupt, but unknown which", ErrCorrupt,
			[]string{status(func(st *pb.StatusResponse) { st.Errors = []string{"alarm:CORRUPT "} })}},
		{"applies too slowly", ErrLag, []string{status(func(st *pb.StatusResponse) { st.RaftIndex += 1001 })}},
		{"clusters", ErrClusters, []string{server.URL, status(func(st *pb.StatusResponse) { st.Header.ClusterId++ })}},
	} {
		dir := t.TempDir()
		_, err := Run(t.Context(), filepath.Join(dir, "out.db"), to(tc.endpoints...))
		require.ErrorIs(t, err, tc.want, tc.name)
		left(t, dir)
	}

	// The newest member is chosen; a higher limit allows the first member that is not the leader.
	behind := status(func(st *pb.StatusResponse) { st.Leader++; st.Errors = []string{other, other} })
	o := to(behind, ahead)
	r, err := Run(t.Context(), filepath.Join(t.TempDir(), "out.db"), o)
	require.NoError(t, err)
	require.Equal(t, ahead, r.Member.Endpoint)
	require.Len(t, r.Refused, 1)
	require.ErrorIs(t, r.Refused[0].err, ErrLag)
	require.Contains(t, r.Refused[0].Reason, "1001 raft entries behind the newest, 1000 are allowed")
	o.MaxLag = 1001
	r, err = Run(t.Context(), filepath.Join(t.TempDir(), "out.db"), o)
	require.NoError(t, err)
	require.Equal(t, behind, r.Member.Endpoint)
	require.Equal(t, uint64(1001), r.Member.Lag)
	require.Equal(t, []string{"the cluster has an alarm, which a restore keeps: memberID:7 alarm:CORRUPT"}, r.Warnings)
}

// textOf returns a stream of text with a valid digest.
func textOf(n int) []*pb.SnapshotResponse {
	text := bytes.Repeat([]byte("no database\n"), n/12+1)[:n]
	sum := sha256.Sum256(text)
	return []*pb.SnapshotResponse{{Blob: text}, {Blob: sum[:]}}
}
