package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/etcdshift/etcdshift/encoding"
)

// SetStoredVersions returns the stored bytes of a CRD with these
// status.storedVersions, everything else as it stands in the text (only white
// space between fields, which no server stores, may go), the generation too: a
// server counts changes of spec only. It does not look whether the versions
// exist. The very bytes come back where the list already reads so.
//
// JSON of v1beta1 and v1 is edited; encoding.ErrUnknownFormat is returned for
// CBOR, which no server stores a CRD as, and encoding.ErrEncrypted.
func SetStoredVersions(crd []byte, versions []string) ([]byte, error) {
	list, err := json.Marshal(append([]string{}, versions...))
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	out, err := encoding.EditJSON(crd, []string{"status", "storedVersions"}, func([]byte) ([]byte, error) { return list, nil })
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	return out, nil
}

// SetStorageVersion returns the stored bytes of a CRD whose storage version is
// this one, with generation + 1, as a server counts the update; everything else
// as it stands in the text. status.storedVersions, to which a server would add
// the version, is SetStoredVersions' part. The very bytes come back where the
// version is the storage version already.
//
// ErrNoVersion is returned where spec.versions does not list it; formats are as
// for SetStoredVersions.
func SetStorageVersion(crd []byte, version string) ([]byte, error) {
	changed := false
	out, err := encoding.EditJSON(crd, []string{"spec", "versions"}, func(text []byte) (_ []byte, err error) {
		if onlyVersion(crd) == version && version != "" {
			return text, nil
		}
		text, changed, err = flipStorage(text, version)
		return text, err
	})
	if err == nil && changed {
		out, err = encoding.EditJSON(out, []string{"metadata", "generation"}, increment)
	}
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	return out, nil
}

// onlyVersion is spec.version of the oldest CRDs, which have no spec.versions.
func onlyVersion(crd []byte) string {
	var old struct {
		Spec struct {
			Version  string            `json:"version"`
			Versions []json.RawMessage `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(crd, &old); err != nil || len(old.Spec.Versions) > 0 {
		return ""
	}
	return old.Spec.Version
}

// flipStorage edits the text of spec.versions.
func flipStorage(text []byte, storage string) (edited []byte, changed bool, err error) {
	var versions []json.RawMessage
	if err := json.Unmarshal(text, &versions); err != nil {
		return nil, false, err
	}
	found := false
	parts := make([][]byte, len(versions))
	for i, version := range versions {
		var v struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
		}
		err := json.Unmarshal(version, &v)
		parts[i] = version
		want := v.Name == storage
		if err == nil && v.Storage != want {
			changed = true
			parts[i], err = encoding.EditJSON(version, []string{"storage"}, func([]byte) ([]byte, error) {
				return strconv.AppendBool(nil, want), nil
			})
		}
		if err != nil {
			return nil, false, fmt.Errorf("[%d]: %w", i, err)
		}
		found = found || want
	}
	switch {
	case !found || storage == "":
		return nil, false, fmt.Errorf("version %q: %w", storage, ErrNoVersion)
	case !changed:
		return text, false, nil
	default:
		return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']'), true, nil
	}
}

// increment takes the text of metadata.generation; a missing one counts from 0.
func increment(text []byte) ([]byte, error) {
	var generation int64
	if err := json.Unmarshal(text, &generation); err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, generation+1, 10), nil
}
