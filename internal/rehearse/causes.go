package rehearse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
)

// lookForCauses adds findings about causes, and a step. The step passes: earlier steps have
// failed.
func lookForCauses(ctx context.Context, r *rehearsal) error {
	const name = "look for causes"
	r.Phase(name)
	began := time.Now()
	detail, err := explainFailures(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.timed(name, began, detail, true)
	return nil
}

// explainFailures adds doctor's findings about records that make an API server, or its lists, fail.
func explainFailures(ctx context.Context, r *rehearsal) (string, error) {
	o, command := doctor.Options{Keys: r.Transformers != nil}, "etcdshift doctor "
	if minor := serverRelease(ctx, r); minor > 0 {
		o.Kubernetes = minor
		command += fmt.Sprintf("--kubernetes 1.%d ", minor)
	}
	found, err := doctor.Examine(ctx, r.reader, o)
	if err != nil {
		return "", err
	}
	reads := func(f finding.Finding) bool { // the API server of this program has only custom resources
		key, err := keys.Kubernetes{Prefix: r.storage.Prefix}.Parse([]byte(f.Key))
		return r.APIServer != "" || err == nil && (keys.IsCustom(key.Resource) || key.Resource == keys.DefinitionType())
	}
	causes := 0
	for _, code := range doctor.Unreadable() {
		listed := found.Of(code)
		first := slices.IndexFunc(listed, reads)
		if first < 0 {
			continue
		}
		n := found.Counts[code] // more than the listed ones
		for _, f := range listed {
			if !reads(f) {
				n--
			}
		}
		causes += n
		r.Found.Add(codeRecords.Because("%s: %s of doctor, the first: %s; all of them: %s", code.Name,
			phrase.Count(n, "finding"), listed[first].Reason, command+r.reader.Snapshot().Path()).At(listed[first].Key))
	}
	return fmt.Sprintf("findings of doctor about unreadable records: %d", causes), nil
}

// serverRelease returns the minor release of the user's API server; 0 if it is unknown to this
// build.
func serverRelease(ctx context.Context, r *rehearsal) (minor int) {
	if r.APIServer == "" {
		return 0
	}
	version := r.Versions.Kubernetes
	if version == "" { // the server did not answer
		version, _ = r.releaseOf(ctx, r.APIServer)
	}
	minor, _ = native.ParseRelease(version)
	return minor
}
