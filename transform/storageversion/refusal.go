package storageversion

import (
	"errors"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
)

// refusal is why a record cannot be migrated: a problem code and a reason a person can read.
type refusal struct{ code, reason string }

func refuse(code, format string, args ...any) *refusal {
	return &refusal{code: code, reason: clip(fmt.Sprintf(format, args...))}
}

// unread says that the record cannot be read: nobody can tell for sure at which version it is.
func (r *refusal) unread() bool {
	switch r.code {
	case codeUndecodable, codeEncrypted, codeUnknownKey, codeUnknownKind:
		return true
	}
	return false
}

// refuseValue is the refusal of a value that cannot be read.
func refuseValue(err error) *refusal {
	if errors.Is(err, encoding.ErrEncrypted) {
		return refuse(codeEncrypted, "%v", err)
	}
	return refuse(codeUndecodable, "%v", err)
}

// refuseObject is the refusal of an object that the CustomResourceDefinition cannot bring to what is stored.
func refuseObject(err error) *refusal {
	if errors.Is(err, schema.ErrTooLarge) {
		return refuse(codeInvalid, "%v", err)
	}
	return refuse(codeUndecodable, "%v", err)
}

// clip cuts text that quotes what it is about: a field's name, or a converter's message, may be long.
func clip(text string) string {
	const most = 2000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// listPaths names fields, and not more of them than a person reads.
func listPaths(paths []string) string {
	const most = 20
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}
