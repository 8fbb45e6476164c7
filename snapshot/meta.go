package snapshot

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// The two meta pages (bbolt internal/common/meta.go): after the page header 64 bytes {magic u32, version u32, page size u32,
// flags u32, root pgid u64, root sequence u64, freelist pgid u64, high-water mark u64, txid u64, fnv64a of the 56 before it}.
const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64
	// noFreelist is the free-list page id of a file whose free list is not stored, which is how etcd opens bbolt
	// (etcd server/storage/backend/config_linux.go: NoFreelistSync).
	noFreelist = ^uint64(0)

	// maxTxid leaves room for transactions: bbolt believes the meta with the higher one.
	maxTxid = 1<<64 - 1<<32

	// A file has the page size of the machine that made it: 4, 16 or 64 KiB where etcd runs. bbolt itself looks for a second meta
	// at 1 KiB to 16 MiB (db.go:getPageSizeFromSecondMeta); more than 64 KiB would only let a hostile file claim memory.
	minPageSize = 1 << 10
	maxPageSize = 64 << 10
)

// meta is the decoded body of a meta page.
type meta struct {
	pageSize  int    // bytes
	root      uint64 // page id of the root bucket's tree
	sequence  uint64
	freelist  uint64
	highWater uint64 // pages; the image is exactly highWater*pageSize bytes
	txid      uint64
}

// parseMeta decodes the meta page image p.
func parseMeta(p []byte) (meta, error) {
	if len(p) < pageHeaderSize+metaSize {
		return meta{}, fmt.Errorf("%w: %d bytes are too few for a meta page", ErrTruncated, len(p))
	}
	m := p[pageHeaderSize:]
	switch le.Uint32(m) {
	case metaMagic:
	case 0xEDDA0CED:
		return meta{}, fmt.Errorf("%w: written by a big-endian machine, which no other can open", ErrNotSnapshot)
	default:
		return meta{}, fmt.Errorf("%w: no bbolt magic number", ErrNotSnapshot)
	}
	if v := le.Uint32(m[4:]); v != metaVersion {
		return meta{}, fmt.Errorf("%w: bbolt format version %d, want %d", ErrNotSnapshot, v, metaVersion)
	}
	if metaSum(m) != le.Uint64(m[56:]) {
		return meta{}, fmt.Errorf("%w: meta checksum is wrong", ErrDamaged)
	}
	out := meta{
		pageSize: int(le.Uint32(m[8:])), root: le.Uint64(m[16:]), sequence: le.Uint64(m[24:]),
		freelist: le.Uint64(m[32:]), highWater: le.Uint64(m[40:]), txid: le.Uint64(m[48:]),
	}
	if ps := out.pageSize; ps < minPageSize || ps > maxPageSize || ps&(ps-1) != 0 {
		return meta{}, fmt.Errorf("%w: page size %d", ErrDamaged, ps)
	}
	if out.highWater < 4 || out.root < 2 || out.root >= out.highWater {
		return meta{}, fmt.Errorf("%w: root page %d with %d pages", ErrDamaged, out.root, out.highWater)
	}
	if out.txid > maxTxid {
		return meta{}, fmt.Errorf("%w: transaction %d, after which bbolt begins again at 0", ErrDamaged, out.txid)
	}
	return out, nil
}

// put writes m as meta page id (0 or 1) over the first bytes of the page p, which is otherwise zeroed.
func (m meta) put(p []byte, id uint64) {
	clear(p)
	le.PutUint64(p, id)
	le.PutUint16(p[8:], flagMeta)
	b := p[pageHeaderSize:]
	le.PutUint32(b, metaMagic)
	le.PutUint32(b[4:], metaVersion)
	le.PutUint32(b[8:], uint32(m.pageSize))
	le.PutUint64(b[16:], m.root)
	le.PutUint64(b[24:], m.sequence)
	le.PutUint64(b[32:], m.freelist)
	le.PutUint64(b[40:], m.highWater)
	le.PutUint64(b[48:], m.txid)
	le.PutUint64(b[56:], metaSum(b))
}

// metaSum is the checksum of the meta body m.
func metaSum(m []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(m[:56])
	return h.Sum64()
}

// metaFault is what err of findMetas says, without what a file would be that has no other meta.
func metaFault(err error) string {
	_, fault, _ := strings.Cut(err.Error(), ": ")
	return fault
}

// findMetas reads both metas of the image. The second lies one page behind the first; when the first is damaged its page
// size is unknown and every size is tried, as bbolt does.
func findMetas(b []byte) (metas [2]meta, errs [2]error) {
	metas[0], errs[0] = parseMeta(b)
	if errs[0] == nil {
		if len(b) < 2*metas[0].pageSize {
			errs[1] = fmt.Errorf("%w: no room for the second meta page", ErrTruncated)
			return metas, errs
		}
		metas[1], errs[1] = parseMeta(b[metas[0].pageSize:])
		if errs[1] == nil && metas[1].pageSize != metas[0].pageSize {
			errs[1] = fmt.Errorf("%w: page size %d, the first meta has %d", ErrDamaged, metas[1].pageSize, metas[0].pageSize)
		}
		return metas, errs
	}
	errs[1] = errs[0]
	for ps := minPageSize; ps <= maxPageSize && ps+pageHeaderSize+metaSize <= len(b); ps <<= 1 {
		if m, err := parseMeta(b[ps:]); err == nil && m.pageSize == ps {
			metas[1], errs[1] = m, nil
			return metas, errs
		}
	}
	return metas, errs
}
