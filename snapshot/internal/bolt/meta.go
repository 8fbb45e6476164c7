package bolt

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/etcdshift/etcdshift/finding"
)

// All errors of this package wrap one of the first three errors.
var (
	ErrNotBolt = finding.WithLasting(errors.New("not an etcd snapshot"),
		"give a file that \"etcdctl snapshot save\" made, or a member/snap/db, or one of them compressed (gzip, "+
			"zstd, zip) or in an archive (zip, tar, tar.gz), or the data directory of a stopped member")
	ErrTruncated = finding.WithLasting(errors.New("file is truncated"),
		"the file was not written or copied to its end; try another copy, or take a new snapshot; "+
			"\"etcdshift salvage\" writes what it still holds")
	ErrDamaged = finding.WithLasting(errors.New("file is damaged"),
		"try another copy of the file, or take a new snapshot with \"etcdctl snapshot save\"; "+
			"\"etcdshift salvage\" writes what it still holds")
	// ErrDigest is returned for an image whose SHA-256 differs from the digest at the end.
	ErrDigest = finding.WithLasting(errors.New("digest does not match"),
		"the file differs from the one that etcd saved; try another copy, or take a new snapshot with "+
			"\"etcdctl snapshot save\"")
	// ErrChanged is returned for a file that differs from the opened one.
	ErrChanged = finding.WithHint(errors.New("file changed while it was read"),
		"something writes to the file; work on a copy")
)

const (
	MetaMagic = 0xED0CDAED
	MetaSize  = 64 // bytes, without the page header
	// NoFreelist is the Freelist of a file without a stored free list. etcd writes such files (etcd
	// server/storage/backend/config_linux.go: NoFreelistSync).
	NoFreelist = ^uint64(0)

	// The page size of a file is that of its machine: 4, 16 or 64 KiB for etcd. A larger limit
	// would only let a hostile file claim memory.
	MinPageSize = 1 << 10
	MaxPageSize = 64 << 10

	metaVersion = 2
	// maxTxID leaves room for later transactions: bbolt uses the meta with the higher transaction.
	maxTxID = 1<<64 - 1<<32
)

// Meta is a meta page.
type Meta struct {
	PageSize  int    // bytes
	Root      uint64 // page
	Sequence  uint64
	Freelist  uint64 // page, or NoFreelist
	HighWater uint64 // pages of the image
	TxID      uint64
}

// Bytes returns the size of the image.
func (m Meta) Bytes() int64 { return int64(m.HighWater) * int64(m.PageSize) }

// ParseMeta decodes the meta page at the beginning of b.
func ParseMeta(b []byte) (Meta, error) {
	if len(b) < HeaderSize+MetaSize {
		return Meta{}, fmt.Errorf("%w: %d bytes are too few for a meta page", ErrTruncated, len(b))
	}
	b = b[HeaderSize:]
	m := Meta{
		PageSize: int(le.Uint32(b[8:])), Root: le.Uint64(b[16:]), Sequence: le.Uint64(b[24:]),
		Freelist: le.Uint64(b[32:]), HighWater: le.Uint64(b[40:]), TxID: le.Uint64(b[48:]),
	}
	var err error
	switch magic, version := le.Uint32(b), le.Uint32(b[4:]); {
	case magic == 0xEDDA0CED:
		err = fmt.Errorf("%w: written by a big-endian machine, which no other can open", ErrNotBolt)
	case magic != MetaMagic:
		err = fmt.Errorf("%w: no bbolt magic number", ErrNotBolt)
	case version != metaVersion:
		err = fmt.Errorf("%w: bbolt format version %d, want %d", ErrNotBolt, version, metaVersion)
	case MetaSum(b) != le.Uint64(b[56:]):
		err = fmt.Errorf("%w: meta checksum is wrong", ErrDamaged)
	case m.PageSize < MinPageSize || m.PageSize > MaxPageSize || m.PageSize&(m.PageSize-1) != 0:
		err = fmt.Errorf("%w: page size %d", ErrDamaged, m.PageSize)
	case m.HighWater < 4 || m.Root < 2 || m.Root >= m.HighWater:
		err = fmt.Errorf("%w: root page %d with %d pages", ErrDamaged, m.Root, m.HighWater)
	case m.TxID > maxTxID:
		err = fmt.Errorf("%w: transaction %d, after which bbolt begins again at 0", ErrDamaged, m.TxID)
	default:
		return m, nil
	}
	return Meta{}, err
}

// MetaSum returns the checksum of a meta without its page header.
func MetaSum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b[:56])
	return h.Sum64()
}

// Metas reads both metas of a file. The second meta is one page after the first. If the first meta
// is damaged, the page size is unknown and Metas tries every size, like bbolt.
func Metas(b []byte) (metas [2]Meta, errs [2]error) {
	metas[0], errs[0] = ParseMeta(b)
	switch ps := metas[0].PageSize; {
	case errs[0] != nil:
		errs[1] = errs[0]
		for ps := MinPageSize; ps <= MaxPageSize && ps < len(b); ps <<= 1 {
			if m, err := ParseMeta(b[ps:]); err == nil && m.PageSize == ps {
				metas[1], errs[1] = m, nil
				break
			}
		}
	case len(b) < 2*ps:
		errs[1] = fmt.Errorf("%w: no room for the second meta page", ErrTruncated)
	default:
		metas[1], errs[1] = ParseMeta(b[ps:])
		if got := metas[1].PageSize; errs[1] == nil && got != ps {
			errs[1] = fmt.Errorf("%w: page size %d, the first meta has %d", ErrDamaged, got, ps)
		}
	}
	return metas, errs
}

// Put overwrites the page p with m as meta page id, 0 or 1.
func (m Meta) Put(p []byte, id uint64) {
	clear(p)
	le.PutUint64(p, id)
	le.PutUint16(p[8:], FlagMeta)
	b := p[HeaderSize:]
	le.PutUint32(b, MetaMagic)
	le.PutUint32(b[4:], metaVersion)
	le.PutUint32(b[8:], uint32(m.PageSize))
	le.PutUint64(b[16:], m.Root)
	le.PutUint64(b[24:], m.Sequence)
	le.PutUint64(b[32:], m.Freelist)
	le.PutUint64(b[40:], m.HighWater)
	le.PutUint64(b[48:], m.TxID)
	le.PutUint64(b[56:], MetaSum(b))
}

// Pages returns both meta pages: m, and m with the previous transaction, like a copy made by bbolt
// (tx.go, WriteTo).
func (m Meta) Pages() []byte {
	b := make([]byte, 2*m.PageSize)
	m.Put(b[:m.PageSize], 0)
	m.TxID--
	m.Put(b[m.PageSize:], 1)
	return b
}
