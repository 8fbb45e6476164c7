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

// SetStoredVersions returns the stored bytes of a CRD with these status.storedVersions and all else as it is, the
// generation too: a server counts changes of spec only. It does not look whether the versions exist. The very bytes come
// back where the list already reads so.
//
// JSON of v1beta1 and v1 is edited; encoding.ErrUnknownFormat is returned for CBOR, which no server stores a CRD as, and
// encoding.ErrEncrypted.
func SetStoredVersions(crd []byte, versions []string) ([]byte, error) {
	list := make([]any, len(versions))
	for i, version := range versions {
		list[i] = version
	}
	err := checkText(crd)
	if err == nil {
		crd, err = encoding.Set(crd, list, "status", "storedVersions")
	}
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	return crd, nil
}

// SetStorageVersion returns the stored bytes of a CRD whose storage version is this one, with generation + 1, as a server
// counts the update, and all else as it is. status.storedVersions, to which a server would add the version, is
// SetStoredVersions' part. The very bytes come back where the version is the storage version already.
//
// ErrNoVersion is returned where spec.versions does not list it; formats are as for SetStoredVersions.
func SetStorageVersion(crd []byte, version string) ([]byte, error) {
	err := checkText(crd)
	if err == nil {
		crd, err = setStorageVersion(crd, version)
	}
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	return crd, nil
}

func checkText(crd []byte) error {
	if f := encoding.Detect(crd); f == encoding.FormatCBOR {
		return fmt.Errorf("%w: %s", encoding.ErrUnknownFormat, f)
	}
	return nil
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
	if len(versions) == 0 { // the oldest CRDs have spec.version alone
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
	if err != nil || !ok && before != nil { // a missing one counts from 0
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
		is, _ := v["storage"].(bool)
		want := v["name"] == storage
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
