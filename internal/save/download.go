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

// errDisk is of a file that, read back, is not what was written.
var errDisk = snapshot.ErrVerify

// leastData is how many bytes have to come before the patience ends: a part of a stream of etcd, of
// which a member that only says a byte now and then sends none.
const leastData = 32 << 10

// download writes the snapshot of a member to the empty file, and returns its SHA-256.
func (s *saver) download(ctx context.Context, m *member) (sum [sha256.Size]byte, err error) {
	if err := s.empty(); err != nil {
		return sum, err
	}
	ctx, watch, end := patient(m.as(ctx), s.patience, "no data for")
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

// empty makes the file empty again after a download that broke off.
func (s *saver) empty() error {
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// incoming checks a stream while it is written.
type incoming struct {
	out   *os.File
	image hash.Hash // of all bytes but the tail
	tail  []byte    // the last bytes, at most a digest
	size  int64     // of what was written
	total int64     // of the whole file, as the first part tells
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

// broken says how far a download came.
func (in *incoming) broken(err error) error {
	if in.size == 0 {
		return fmt.Errorf("no download: %w", err)
	}
	return fmt.Errorf("the download broke off after %d bytes of %d: %w", in.size, in.total, err)
}

// end checks the digest of a stream that has ended, and returns that of the whole file.
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

// check reads the file back before it has a name.
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

// patient returns a context that ends with a reason when its timer does, and what frees both. It is
// no deadline: a server would learn it, and answer in words of its own just before it.
func patient(ctx context.Context, limit time.Duration, reason string) (context.Context, *time.Timer, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%s %s", reason, limit)) })
	return ctx, watch, func() {
		watch.Stop()
		cancel(nil)
	}
}

// reasonOf is the error of a call in few words: the reason why ctx ended, or what the other side
// said.
func reasonOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &callError{status.Convert(err)}
}

// callError is an error of gRPC without the words around it.
type callError struct{ of *status.Status }

func (e *callError) Error() string              { return e.of.Message() }
func (e *callError) GRPCStatus() *status.Status { return e.of }

// permanent reports whether a second try would end in the same way.
func permanent(err error) bool {
	var call *callError
	if !errors.As(err, &call) {
		return false
	}
	switch call.of.Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.Unimplemented,
		codes.FailedPrecondition,
		codes.Unknown: // an error of the server, such as "auth: user name is empty" of etcd 3.5
		return true
	}
	return false
}
