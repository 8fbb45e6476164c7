package wal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Record types (etcd server/storage/wal/wal.go).
const (
	typeMetadata = iota + 1
	typeEntry
	typeState
	typeCRC
	typeSnapshot
)

const (
	lengthSize = 8 // bytes before a record: its length, and its padding in the highest byte
	sectorSize = 512
	// maxRecord limits the bytes of a record. etcd's default limit of a request is 1.5 MiB.
	maxRecord = 64 << 20
	// maxFile limits the bytes of a file: etcd begins a new one after 64,000,000 bytes.
	maxFile = 64_000_000 + maxRecord + 1<<20
)

// record is a walpb.Record.
type record struct {
	kind uint64
	crc  uint32
	data []byte // valid until the next record
	at   int64  // offset in the file
}

// decoder reads the records of one file.
type decoder struct {
	in     *bufio.Reader
	size   int64 // of the file
	last   bool  // the file is the last one: a record may be torn
	offset int64 // of the next record
	crc    uint32
	buf    []byte

	unchecked bool // without checksums, for a record that was read before
}

// errTorn is the error for a record of which a crash left only a part.
var errTorn = errors.New("torn record")

// next reads a record into rec. After the last record the error is io.EOF.
func (d *decoder) next(rec *record) error {
	*rec = record{at: d.offset}
	var head [lengthSize]byte
	switch _, err := io.ReadFull(d.in, head[:]); {
	case err == io.EOF:
		return io.EOF
	case err == io.ErrUnexpectedEOF:
		return d.torn("its length")
	case err != nil:
		return err
	}
	field := int64(binary.LittleEndian.Uint64(head[:]))
	if field == 0 {
		return io.EOF
	}
	length, padding := field&(1<<56-1), int64(0)
	if field < 0 {
		padding = field >> 56 & 7
	}
	if length > maxRecord {
		return fmt.Errorf("a record of %d bytes, the limit is %d", length, maxRecord)
	}
	if length+padding > d.size-d.offset-lengthSize {
		return d.torn(fmt.Sprintf("%d bytes", length))
	}
	if int64(cap(d.buf)) < length+padding {
		d.buf = make([]byte, length+padding)
	}
	d.buf = d.buf[:length+padding]
	if _, err := io.ReadFull(d.in, d.buf); err != nil {
		if err == io.EOF { // the record is cut off
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return d.decode(rec, d.buf[:length])
}

// decode decodes a record and checks its checksum.
func (d *decoder) decode(rec *record, msg []byte) error {
	err := eachField(msg, func(num protowire.Number, n uint64, b []byte) error {
		switch num {
		case 1:
			rec.kind = n
		case 2:
			rec.crc = uint32(n)
		case 3:
			rec.data = b
		}
		return nil
	})
	if err == nil && rec.kind == typeCRC {
		if d.crc != 0 && d.crc != rec.crc {
			err = fmt.Errorf("the checksum %08x does not continue %08x (\"walpb: crc mismatch\")", rec.crc, d.crc)
		}
		d.crc = rec.crc
	} else if err == nil && !d.unchecked {
		d.crc = crc32.Update(d.crc, crc32.MakeTable(crc32.Castagnoli), rec.data)
		if d.crc != rec.crc {
			err = errors.New("the checksum is wrong (\"walpb: crc mismatch\")")
		}
	}
	if err != nil && d.last && d.hasEmptySector() {
		return d.torn("a sector of zeros")
	}
	d.offset += lengthSize + int64(len(d.buf))
	return err
}

// torn is the error for a record that ends too early.
func (d *decoder) torn(what string) error {
	if d.last {
		return fmt.Errorf("%w: %s", errTorn, what)
	}
	return fmt.Errorf("the record ends too early: %s", what)
}

// hasEmptySector reports whether a sector of the record is zero: it was never written (etcd
// server/storage/wal/decoder.go, isTornEntry).
func (d *decoder) hasEmptySector() bool {
	for at, rest := d.offset+lengthSize, d.buf; len(rest) > 0; {
		n := min(int64(len(rest)), sectorSize-at%sectorSize)
		if isZero(rest[:n]) {
			return true
		}
		at, rest = at+n, rest[n:]
	}
	return false
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// checkEnd checks that only zeros follow the last record, which ends at offset: etcd preallocates
// the last file, and cuts all others.
func (d *decoder) checkEnd() error {
	at, buf := d.offset+lengthSize, make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(d.in, buf)
		if !isZero(buf[:n]) {
			return fmt.Errorf("the log ends here, but bytes were written behind offset %d", at)
		}
		at += int64(n)
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// eachField calls fn with each field of a protobuf message: a number or bytes. Other wire types are
// skipped. A second occurrence of a field, which etcd never writes, reaches fn too.
func eachField(msg []byte, fn func(num protowire.Number, n uint64, b []byte) error) error {
	for len(msg) > 0 {
		num, typ, size := protowire.ConsumeTag(msg)
		if size < 0 || num > protowire.MaxValidNumber {
			return ErrNotProtobuf
		}
		msg = msg[size:]
		var n uint64
		var b []byte
		switch typ {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(msg)
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(msg)
		default:
			size = protowire.ConsumeFieldValue(num, typ, msg)
		}
		if size < 0 {
			return ErrNotProtobuf
		}
		msg = msg[size:]
		if typ != protowire.VarintType && typ != protowire.BytesType {
			continue
		}
		if err := fn(num, n, b); err != nil {
			return err
		}
	}
	return nil
}

// ErrNotProtobuf is the error for bytes that are not a protobuf message.
var ErrNotProtobuf = errors.New("not a protobuf message")

// Entry is an entry of the raft log.
type Entry struct {
	Index, Term uint64
	Conf        bool   // a change of the members, not a request
	Data        []byte // valid until the next entry; empty for the first entry of a leader
	At          Position
}

// Position is the place of an entry in the log.
type Position struct {
	File   int // in the order of the files
	Offset int64
}

// Added returns the id of the member that an entry adds with a vote, or 0 (raftpb.ConfChange).
func (e Entry) Added() uint64 {
	kind, id, err := numbers(e.Data, 2, 3)
	if !e.Conf || err != nil || kind != 0 {
		return 0
	}
	return id
}

func parseEntry(b []byte) (e Entry, err error) {
	err = eachField(b, func(num protowire.Number, n uint64, b []byte) error {
		switch num {
		case 1:
			e.Conf = n != 0
		case 2:
			e.Term = n
		case 3:
			e.Index = n
		case 4:
			e.Data = b
		}
		return nil
	})
	if err == nil && (e.Index == 0 || e.Index > math.MaxInt64 || e.Term > math.MaxInt64) {
		err = fmt.Errorf("an entry with index %d and term %d", e.Index, e.Term)
	}
	return e, err
}
