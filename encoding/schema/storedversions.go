package schema

import (
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/encoding"
)

var (
	errVersions   = errors.New("spec.versions: not a list of objects")
	errGeneration = errors.New("metadata.generation: not a whole number")
)

// SetStoredVersions returns the stored bytes of a CRD with these status.storedVersions, which need
// not exist. The rest stays, including the generation: a server counts only changes of spec. For an
// equal list the result is the same bytes. SetStoredVersions edits JSON of v1beta1 and v1; errors
// are encoding.ErrEncrypted and encoding.ErrUnknownFormat, also for CBOR: no server stores a CRD as
// CBOR.
func SetStoredVersions(crd []byte, versions []string) ([]byte, error) {
	list := make([]any, len(versions))
	for i, version := range versions {
		list[i] = version
	}
	return edited(crd, func() ([]byte, error) { return encoding.Set(crd, list, "status", "storedVersions") })
}

// SetStorageVersion returns the stored bytes of a CRD with this storage version and, like an update
// by a server, generation + 1; the same bytes for the present storage version. An unlisted version
// is ErrNoVersion. Formats are those of SetStoredVersions.
func SetStorageVersion(crd []byte, version string) ([]byte, error) {
	return edited(crd, func() ([]byte, error) { return setStorageVersion(crd, version) })
}

func edited(crd []byte, edit func() ([]byte, error)) (out []byte, err error) {
	if f := encoding.Detect(crd); f == encoding.FormatCBOR {
		err = fmt.Errorf("%w: %s", encoding.ErrUnknownFormat, f)
	} else {
		out, err = edit()
	}
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	return out, nil
}

func setStorageVersion(crd []byte, version string) ([]byte, error) {
	content, err := encoding.Get(crd, "spec", "versions")
	if err != nil {
		return nil, err
	}
	versions, ok := content.([]any)
	if !ok && content != nil {
		return nil, errVersions
	}
	if len(versions) == 0 { // the oldest CRDs have only spec.version
		if only, err := encoding.Get(crd, "spec", "version"); err == nil && only == version && version != "" {
			return crd, nil
		}
	}
	changed, err := flipStorage(versions, version)
	if err != nil || !changed {
		return crd, err
	}
	out, err := encoding.Set(crd, versions, "spec", "versions")
	if err != nil {
		return nil, err
	}
	before, err := encoding.Get(out, "metadata", "generation")
	generation, ok := before.(int64)
	if err != nil || !ok && before != nil { // a missing generation counts as 0
		return nil, errors.Join(errGeneration, err)
	}
	return encoding.Set(out, generation+1, "metadata", "generation")
}

// flipStorage edits decoded spec.versions.
func flipStorage(versions []any, storage string) (changed bool, err error) {
	found := false
	for _, element := range versions {
		v, ok := element.(map[string]any)
		if !ok {
			return false, errVersions
		}
		is, want := v["storage"] == true, v["name"] == storage
		if is != want {
			v["storage"], changed = want, true
		}
		found = found || want
	}
	if !found || storage == "" {
		return false, fmt.Errorf("version %q: %w", storage, ErrNoVersion)
	}
	return changed, nil
}
