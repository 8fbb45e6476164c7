package storageversion

import (
	"errors"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
)

// unread says that a refused record cannot be read: nobody can tell for sure at which version it is.
func unread(f *finding.Finding) bool {
	switch f.Code {
	case finding.Undecodable, finding.Encrypted, codeUnknownKey, codeUnknownKind:
		return true
	}
	return false
}

// refuseObject is the finding of an object that the CustomResourceDefinition cannot bring to what is stored.
func refuseObject(err error) *finding.Finding {
	if errors.Is(err, schema.ErrTooLarge) {
		return codeInvalid.Because("%v", err)
	}
	return finding.Undecodable.Because("%v", err)
}
