package inspect

// packing works out how many pages entries take that are put in order into a new bbolt database as a defragmentation puts them
// (etcd server/storage/backend, defragdb; bbolt node.go, splitIndex): a node is cut where it is filled to nine tenths of a page
// and holds at least two entries.
type packing struct {
	page   int
	levels []node // the leaf that is being filled, and the branches above it
}

type node struct {
	entries, bytes int
	nodes          int   // closed
	pages          int64 // of those
}

// Of bbolt internal/common/page.go, the keys of etcd's key bucket, and what a defragmentation sets.
const (
	pageHeader  = 16
	pageElement = 16
	branchEntry = pageElement + 17 // main, '_', sub
	minEntries  = 2
	fillTenths  = 9
)

func newPacking(page int) *packing { return &packing{page: page, levels: []node{{bytes: pageHeader}}} }

// add puts one entry, whose key and value have so many bytes, behind all others.
func (p *packing) add(size int) { p.put(0, pageElement+size) }

func (p *packing) put(level, size int) {
	if level == len(p.levels) {
		p.levels = append(p.levels, node{bytes: pageHeader})
	}
	n := &p.levels[level]
	if n.entries >= minEntries && n.bytes+size > p.page*fillTenths/10 {
		n.close(p.page)
		p.put(level+1, branchEntry)
		n = &p.levels[level]
	}
	n.entries++
	n.bytes += size
}

func (n *node) close(page int) {
	n.pages += int64((n.bytes + page - 1) / page)
	*n = node{bytes: pageHeader, nodes: n.nodes + 1, pages: n.pages}
}

// pages is how many pages the bucket takes.
func (p *packing) pages() (total int64) {
	for i := range p.levels {
		n := p.levels[i]
		if n.entries > 0 {
			n.close(p.page)
		}
		total += n.pages
	}
	return total
}

// image is the size of a whole database with these entries and so many leases, in bytes: an estimate.
func (p *packing) image(leases int) int64 {
	const (
		lease = 38 // an entry with an id of eight bytes
		// fixed is the pages of metas, the root, the other buckets with what they hold, and those that the last transactions
		// have written anew and left free.
		fixed = 5
	)
	others := newPacking(p.page)
	for range leases {
		others.add(lease - pageElement)
	}
	return (p.pages() + others.pages() + fixed) * int64(p.page)
}
