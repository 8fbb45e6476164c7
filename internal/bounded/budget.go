package bounded

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/etcdshift/etcdshift/finding"
)

// An API server bounds the cost of expressions for one object. A Budget bounds that of all objects
// of a run: RunCost, and objectCost more for each object. Half a million to two million units
// take a second. No time counts, so that each run ends at the same object.
const (
	RunCost    = 10_000_000
	objectCost = 5_000
)

// Budget is what expressions may cost on all objects of a run.
type Budget struct {
	Limit int64 // beside the cost of each object; 0 is RunCost

	lock    sync.Mutex
	pending []*Meter // in the order of the objects
	spent   int64
	objects int64            // with expressions
	by      map[string]int64 // what was spent, by the name of the expressions
	over    bool
}

// Meter counts what expressions cost on one object. Its zero value counts without a budget.
type Meter struct {
	budget *Budget
	cost   int64
	by     map[string]int64
	used   bool
}

// Meter returns the meter of the next object. Calls are in the order of the objects; what is
// evaluated then may run in parallel.
func (b *Budget) Meter() *Meter {
	b.lock.Lock()
	defer b.lock.Unlock()
	m := &Meter{budget: b}
	b.pending = append(b.pending, m)
	return m
}

// Exhausted is the meter of an object that comes when a budget is used up.
func Exhausted() *Meter { return &Meter{budget: &Budget{over: true}} }

// left is what the budget has after so many objects cost so much.
func (b *Budget) left(objects, cost int64) int64 {
	limit := b.Limit
	if limit == 0 {
		limit = RunCost
	}
	return limit + objects*objectCost - cost
}

// Start reports whether expressions are evaluated on the object: false where objects before it
// have used up the budget, as far as is known.
func (m *Meter) Start() bool {
	m.used = true
	return !m.Over()
}

// Over reports whether objects before it have used up the budget, as far as is known. What is done
// then must not show, but after Start.
func (m *Meter) Over() bool {
	b := m.budget
	if b == nil {
		return false
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.over {
		return true
	}
	cost, before := b.spent, slices.Index(b.pending, m)
	for _, one := range b.pending[:before] {
		cost += one.cost
	}
	return b.left(b.objects+int64(before), cost) < 0
}

// Add counts the cost of the expressions of a policy or definition.
func (m *Meter) Add(name string, cost int64) {
	if m.budget != nil {
		m.budget.lock.Lock()
		defer m.budget.lock.Unlock()
	}
	if m.by == nil {
		m.by = map[string]int64{}
	}
	m.by[name] += cost
	m.cost += cost
}

// Cost is what was added.
func (m *Meter) Cost() int64 { return m.cost }

// Take counts the object in the budget. It returns false where the budget was used up before, and
// expressions were to be evaluated: what they say does not count. Each meter is taken, in the order
// of the objects.
func (m *Meter) Take() bool {
	b := m.budget
	if b == nil {
		return true
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.pending = b.pending[1:]
	if b.over || !m.used {
		return !m.used
	}
	b.objects++
	b.spent += m.cost
	if b.by == nil {
		b.by = map[string]int64{}
	}
	for name, cost := range m.by {
		b.by[name] += cost
	}
	b.over = b.left(b.objects, b.spent) < 0
	return true
}

// String gives the cost so far, the number of objects, and the names that cost most.
func (b *Budget) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return fmt.Sprintf("%d units of CEL for the first %d objects, the most of it by %s", b.spent,
		b.objects, dearest(b.by))
}

// Dearest lists what costs most on the object.
func (m *Meter) Dearest() string { return dearest(m.by) }

// dearest lists the names that cost a tenth of the sum or more, by their costs.
func dearest(by map[string]int64) string {
	var sum int64
	for _, cost := range by {
		sum += cost
	}
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Or(cmp.Compare(by[y], by[x]), cmp.Compare(x, y))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return by[name] < sum/10 && name != names[0] })
	return finding.List(names)
}

type meterKey struct{}

// WithMeter returns a context whose evaluations count their cost in m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// MeterOf is the meter of a context.
func MeterOf(ctx context.Context) *Meter {
	if m, is := ctx.Value(meterKey{}).(*Meter); is {
		return m
	}
	return &Meter{}
}
