package calico

// Limits of a batch.
const (
	batchRecords = 256
	batchBytes   = 1 << 20 // of stored values; decoded ones take several times as much
)

// batch gathers records that are worked on in parallel.
type batch[T any] struct {
	records []T
	size    int // bytes
}

// add adds a record of that many bytes, and tells whether the batch is full.
func (b *batch[T]) add(record T, size int) (full bool) {
	b.records = append(b.records, record)
	b.size += size
	return len(b.records) == batchRecords || b.size >= batchBytes
}

// take empties the batch.
func (b *batch[T]) take() []T {
	taken := b.records
	*b = batch[T]{}
	return taken
}
