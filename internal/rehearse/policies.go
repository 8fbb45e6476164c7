package rehearse

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/internal/policy"
)

// meetPolicies evaluates the policies on the objects of the file, as the next write of each would.
func (r *rehearsal) meetPolicies(ctx context.Context) (detail string, err error) {
	err = r.reader.Snapshot().Guard(func() error {
		set, err := r.Policies.Load(ctx, policy.Validating)
		if err != nil {
			return err
		}
		if err := r.Policies.Complete(ctx, set, r.reader); err != nil {
			return err
		}
		e, err := policy.New(ctx, set, r.reader, policy.Options{})
		if err != nil {
			return err
		}
		objects, err := policy.Check(ctx, e, r.reader, &r.Found)
		detail = fmt.Sprintf("policies: %s; objects that their rules name: %d", policy.Names(e.Of(policy.Validating)), objects)
		return err
	})
	return detail, err
}
