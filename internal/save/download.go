package save

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcdshift/etcdshift/snapshot"
)

// errDisk reports a file that differs from the written bytes when read back.
var errDisk = snapshot.ErrVerify

// leastData is the number of bytes that resets the patience timer: less than one part of an etcd
// stream, more than a member that sends single bytes delivers.
const leastData = 32 << 10

// download writes the snapshot of a member to the empty file, and returns its SHA-256.
func (s *saver) download(ctx context.Context, m *member) (sum [sha256.Size]byte, err error) {
	if err := s.empty(); err != nil {
		return sum, err
	}
	ctx, watch, end := withTimeout(m.withToken(ctx), s.patience, "no data for")
	defer end()
	stream, err := pb.NewMaintenanceClient(m.conn()).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return sum, reasonOf(ctx, err)
	}
	in, last := &incoming{out: s.file, image: sha256.New()}, int64(0)
	for {
		part, err := stream.Recv()
		if err == io.EOF {
			return in.end()
		}
		if err != nil {
			return sum, in.broken(reasonOf(ctx, err))
		}
		if err := in.add(part); err != nil {
			return sum, err
		}
		if in.size-last >= leastData || in.size == in.total {
			watch.Reset(s.patience)
			last = in.size
		}
		if s.Received != nil {
			s.Received(in.size, in.total)
		}
	}
}

// empty truncates the file after an interrupted download.
func (s *saver) empty() error {
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// incoming checks a stream during the download.
type incoming struct {
	out   *os.File
	image hash.Hash // of all bytes except the tail
	tail  []byte    // the last received bytes, at most a digest
	size  int64     // bytes received
	total int64     // size of the whole file, from the first part
}

func (in *incoming) add(part *pb.SnapshotResponse) error {
	if in.size == 0 {
		in.total = int64(len(part.Blob)) + int64(part.RemainingBytes) + sha256.Size
	}
	if in.size += int64(len(part.Blob)); in.size > in.total {
		return fmt.Errorf("the member sent more than the %d bytes that it promised", in.total)
	}
	if _, err := in.out.Write(part.Blob); err != nil {
		return err
	}
	in.tail = append(in.tail, part.Blob...)
	if n := len(in.tail) - sha256.Size; n > 0 {
		in.image.Write(in.tail[:n])
		in.tail = append(in.tail[:0], in.tail[n:]...)
	}
	return nil
}

// broken adds the progress of a download to its error.
func (in *incoming) broken(err error) error {
	if in.size == 0 {
		return fmt.Errorf("no download: %w", err)
	}
	return fmt.Errorf("the download broke off after %d bytes of %d: %w", in.size, in.total, err)
}

// end checks the digest at the end of the stream, and returns the digest of the whole file.
func (in *incoming) end() (sum [sha256.Size]byte, err error) {
	switch {
	case in.size != in.total || in.size%512 != sha256.Size:
		return sum, fmt.Errorf("the download ended after %d bytes of %d", in.size, in.total)
	case !bytes.Equal(in.image.Sum(nil), in.tail):
		return sum, fmt.Errorf("%w: the member sent %x, its data has %x", snapshot.ErrDigest, in.tail,
			in.image.Sum(nil))
	}
	in.image.Write(in.tail)
	in.image.Sum(sum[:0])
	return sum, nil
}

// check reads the file back before publication.
func (s *saver) check(ctx context.Context, m *member, sum [sha256.Size]byte) (*Result, error) {
	snap, err := snapshot.Open(ctx, s.path, snapshot.Config{File: s.file, KeepFile: true})
	if err != nil {
		return nil, fmt.Errorf("what it sent is not sound: %w", err)
	}
	defer snap.Close()
	info := snapshot.FileInfo{Path: s.path, SHA256: hex.EncodeToString(sum[:]), Bytes: snap.Size()}
	r := &Result{FileInfo: info, Member: m.Member, Warnings: snap.Warnings()}
	err = snap.Guard(func() (err error) {
		if r.Revision, err = snap.Revision(ctx); err == nil {
			r.Keys, err = snap.Keys(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("what it sent is not sound: %w", err)
	}
	switch digest, err := snap.Digest(ctx); {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil || digest.File != sum:
		return nil, fmt.Errorf("%w: its SHA-256 is not that of the download", errDisk)
	case r.Revision < m.Revision:
		return nil, fmt.Errorf("what it sent ends at revision %d, but its status said %d", r.Revision, m.Revision)
	}
	return r, nil
}

// withTimeout returns a context that ends with a reason when its timer fires, and a function that
// frees both. A deadline would be sent to the server, which would answer first with its own
// message.
func withTimeout(ctx context.Context, limit time.Duration, reason string) (context.Context, *time.Timer, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%s %s", reason, limit)) })
	return ctx, watch, func() {
		watch.Stop()
		cancel(nil)
	}
}

// reasonOf returns the short reason for the error of a call: the cause of ctx or the other side's
// message.
func reasonOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &callError{status.Convert(err)}
}

// callError is a gRPC error without the surrounding text.
type callError struct{ of *status.Status }

func (e *callError) Error() string              { return e.of.Message() }
func (e *callError) GRPCStatus() *status.Status { return e.of }

// permanent reports whether a retry would fail in the same way.
func permanent(err error) bool {
	var call *callError
	if !errors.As(err, &call) {
		return false
	}
	switch call.of.Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.Unimplemented,
		codes.FailedPrecondition,
		codes.Unknown: // a server error, such as "auth: user name is empty" of etcd 3.5
		return true
	}
	return false
}
