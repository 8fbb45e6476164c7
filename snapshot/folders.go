package snapshot

import (
	"bytes"
	"math"
	"strings"
)

// folders sorts keys by their beginning up to the third slash, at two bytes a record, so that a
// scan of a prefix skips other keys. Keys without a folder, or with one too many, are always
// scanned.
type folders struct {
	ids   map[string]uint16
	names []string // by id; 0 is for keys without a folder
	of    []uint16 // by ordinal
}

// maxFolderSize is how long a folder's name may be, in bytes.
const maxFolderSize = 256

func newFolders() folders { return folders{ids: map[string]uint16{}, names: []string{""}} }

// folderName is the beginning of key up to and with its third slash; empty if there is none near.
func folderName(key []byte) []byte {
	at := 0
	for range 3 {
		i := bytes.IndexByte(key[at:min(len(key), maxFolderSize)], '/')
		if i < 0 {
			return nil
		}
		at += i + 1
	}
	return key[:at]
}

// put notes the folder of the record with the given ordinal.
func (f *folders) put(ordinal uint32, key []byte) {
	name := folderName(key)
	id, known := f.ids[string(name)]
	if !known && name != nil && len(f.names) < math.MaxUint16 {
		id = uint16(len(f.names))
		f.ids[string(name)] = id
		f.names = append(f.names, string(name))
	}
	f.of[ordinal] = id
}

// under reports for each ordinal whether its key may begin with prefix.
func (f *folders) under(prefix []byte) func(ordinal uint32) bool {
	p := string(prefix)
	may := make([]bool, len(f.names))
	for id, name := range f.names {
		may[id] = id == 0 || strings.HasPrefix(name, p) || strings.HasPrefix(p, name)
	}
	return func(ordinal uint32) bool { return may[f.of[ordinal]] }
}
