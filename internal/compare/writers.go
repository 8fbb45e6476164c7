package compare

// Writer is an entry of managedFields that is new at a step, or has another time.
type Writer struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	APIVersion  string `json:"apiVersion,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, as stored
}

// writers returns the entries that before lacks; of the oldest record the latest ones.
func writers(before, now Value, what What) (out []Writer) {
	old := map[Writer]bool{}
	if what == Updated {
		for _, w := range managers(before) {
			old[w] = true
		}
	}
	latest := ""
	for _, w := range managers(now) {
		if !old[w] {
			out = append(out, w)
			latest = max(latest, w.Time)
		}
	}
	if what != Oldest {
		return out
	}
	var last []Writer
	for _, w := range out {
		if w.Time == latest {
			last = append(last, w)
		}
	}
	return last
}

func managers(v Value) (out []Writer) {
	for _, entry := range v.Object().GetManagedFields() {
		w := Writer{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource, APIVersion: entry.APIVersion}
		if entry.Time != nil {
			w.Time = entry.Time.UTC().Format("2006-01-02T15:04:05Z")
		}
		out = append(out, w)
	}
	return out
}
