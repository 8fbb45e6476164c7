package snapshot

import "sync/atomic"

// work counts what was read of a file.
type work struct {
	indexed atomic.Int64 // leaves, by passes that find the latest record of each key
	scanned atomic.Int64 // leaves, by passes that read records
	hashed  atomic.Int64 // bytes of the image
	copied  atomic.Int64 // bytes of the image, found to be the same in an output
}

// Progress tells how much of a reader's work is done, from 0 to 1: the pass that builds the index,
// that many passes which read values, each as long as cost of the first one, and the SHA-256 that
// is computed beside them. It may be called while others read.
func (s *Snapshot) Progress(passes int, cost float64) float64 {
	leaves := float64(max(1, s.db.Bucket("key").LeafCount()))
	indexed := min(leaves, float64(s.indexed.Load()))
	scanned := min(leaves*float64(passes), float64(s.scanned.Load()))
	read := (indexed + scanned*cost) / (leaves * (1 + float64(passes)*cost))
	return min(read, float64(s.hashed.Load())/float64(s.db.Bytes()))
}

// Progress tells how much of the copy of the old pages is proven, from 0 to 1: most of the work of
// Write, unless it makes all pages anew. It may be called at any time.
func (d *Draft) Progress() float64 {
	return min(1, float64(d.src.copied.Load())/float64(d.src.db.Bytes()))
}
