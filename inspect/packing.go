package inspect

// packing counts the pages of a new bbolt database that a defragmentation fills with entries in
// order (etcd server/storage/backend, defragdb; bbolt node.go, splitIndex): a node ends where it
// fills nine tenths of a page and has at least two entries.
type packing struct {
	page   int
	levels []node // the leaf to fill, and the branches above the leaf
}

type node struct {
	entries, bytes int
	nodes          int   // complete nodes
	pages          int64 // of the complete nodes
}

// Sizes of bbolt internal/common/page.go and of keys in etcd's key bucket; limits of a
// defragmentation.
const (
	pageHeader  = 16
	pageElement = 16
	branchEntry = pageElement + 17 // main, '_', sub
	minEntries  = 2
	fillTenths  = 9
)

func newPacking(page int) *packing { return &packing{page: page, levels: []node{{bytes: pageHeader}}} }

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

// image estimates the size in bytes of the whole database with a number of leases.
func (p *packing) image(leases int) int64 {
	const (
		lease = 38 // an entry with an id of eight bytes
		// fixed counts the pages of metas, root and other buckets, and the pages freed by the last
		// transactions.
		fixed = 5
	)
	others := newPacking(p.page)
	for range leases {
		others.add(lease - pageElement)
	}
	return (p.pages() + others.pages() + fixed) * int64(p.page)
}
