package compare

import "slices"

// Writer is an entry of managedFields that is new at a step, or has another time.
type Writer struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	APIVersion  string `json:"apiVersion,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, as stored
}

// writers returns the entries that before lacks; of the oldest record the latest ones.
func writers(before, now value, what What) []Writer {
	old, latest := map[Writer]bool{}, ""
	if what == Updated {
		for _, w := range managers(before) {
			old[w] = true
		}
	}
	out := slices.DeleteFunc(managers(now), func(w Writer) bool { return old[w] })
	if what == Oldest {
		for _, w := range out {
			latest = max(latest, w.Time)
		}
	}
	return slices.DeleteFunc(out, func(w Writer) bool { return what == Oldest && w.Time != latest })
}

func managers(v value) (out []Writer) {
	for _, entry := range v.object().GetManagedFields() {
		w := Writer{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource, APIVersion: entry.APIVersion}
		if entry.Time != nil {
			w.Time = entry.Time.UTC().Format("2006-01-02T15:04:05Z")
		}
		out = append(out, w)
	}
	return out
}
