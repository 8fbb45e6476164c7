package encoding

import (
	"bytes"
	"slices"
	"strings"
)

// renameOwners renames owner uids in the paths of one managedFields entry: below f:metadata.f:ownerReferences, the keys
// of the form k:{"uid":"..."}. The order of paths stays sorted where it was. FieldsV1 that can't be read is left as it
// is: a server ignores it as well, and starts the object's field ownership anew.
func renameOwners(fieldsV1 []byte, uids map[string]string) ([]byte, bool) {
	if !bytes.Contains(fieldsV1, []byte("f:ownerReferences")) || checkJSON(fieldsV1) != nil {
		return fieldsV1, false
	}
	root, err := parseJSONObject(bytes.TrimSpace(fieldsV1))
	if err != nil {
		return fieldsV1, false
	}
	root, changed, err := root.edit("f:metadata", func(text []byte) ([]byte, bool, error) {
		metadata, err := parseJSONObject(text)
		if err != nil {
			return nil, false, err
		}
		metadata, changed, err := metadata.edit("f:ownerReferences", func(text []byte) ([]byte, bool, error) {
			return renameKeys(text, uids)
		})
		return metadata.text(), changed, err
	})
	if err != nil || !changed {
		return fieldsV1, false
	}
	return root.text(), true
}

func renameKeys(text []byte, uids map[string]string) ([]byte, bool, error) {
	paths, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	byName := func(a, b jsonField) int { return strings.Compare(a.name, b.name) }
	sorted := slices.IsSortedFunc(paths, byName)
	var out jsonObject
	for _, path := range paths {
		if name, renamed := renameKey(path.name, uids); renamed {
			path.name, path.key = name, quote(name)
		}
		out = append(out, path)
	}
	if slices.EqualFunc(paths, out, func(a, b jsonField) bool { return a.name == b.name }) {
		return text, false, nil
	}
	if sorted {
		slices.SortStableFunc(out, byName)
	}
	out = slices.CompactFunc(out, func(a, b jsonField) bool { return a.name == b.name }) // two owners became one
	return out.text(), true, nil
}

// renameKey renames the uid in a path element such as k:{"uid":"7d0c..."}.
func renameKey(element string, uids map[string]string) (string, bool) {
	text, isKey := strings.CutPrefix(element, "k:")
	if !isKey || checkJSON([]byte(text)) != nil {
		return element, false
	}
	key, err := parseJSONObject(bytes.TrimSpace([]byte(text)))
	if err != nil {
		return element, false
	}
	uid, err := key.str("uid")
	renamed, found := uids[uid]
	if err != nil || !found || key.last("uid") < 0 {
		return element, false
	}
	return "k:" + string(key.set("uid", quote(renamed)).text()), true
}
