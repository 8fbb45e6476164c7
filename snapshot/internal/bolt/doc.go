// Package bolt reads, checks and writes the pages of a bbolt database, the file format below etcd's
// store. The package knows nothing of etcd. Source: go.etcd.io/bbolt v1.5.0, internal/common.
//
// A database is a row of pages of one size, numbered from 0. All integers are little-endian. Pages
// 0 and 1 are metas; the valid meta with the higher transaction counts. Any other page is part of a
// tree, lists free pages, or is free. Offsets and sizes in bytes:
//
//	page header    0  8  number of the page
//	               8  2  flags: FlagBranch, FlagLeaf, FlagMeta or FlagFreelist
//	              10  2  number of elements
//	              12  4  overflow: how many pages behind this one belong to it
//
//	meta           0  4  magic number, behind the page header
//	               4  4  version of the format
//	               8  4  page size
//	              12  4  flags
//	              16  8  page of the root bucket
//	              24  8  sequence of the root bucket
//	              32  8  page of the free list
//	              40  8  high-water mark: number of pages
//	              48  8  transaction
//	              56  8  FNV-64a of the 56 bytes before
//
//	leaf element   0  4  flags: FlagBucket
//	               4  4  offset of key and value, from the element
//	               8  4  size of the key
//	              12  4  size of the value
//
//	branch element 0  4  offset of the key, from the element
//	               4  4  size of the key
//	               8  8  page with the keys from this one on
//
//	bucket         0  8  page of its tree; 0 if the bucket is inline
//	               8  8  sequence
//	              16     a leaf page, if the bucket is inline
//
// Invariants:
//
//   - No content of a file is trusted: a page is checked before its elements are read, no page is
//     used twice, and work is bounded by the size of the file. An error wraps ErrDamaged,
//     ErrTruncated or ErrNotBolt and names the page.
//   - Free pages may hold anything and are not read.
//   - bbolt reads every file of Writer, and the same elements give the same bytes.
package bolt
