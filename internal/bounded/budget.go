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

// An API server limits the cost of expressions for one object. A Budget limits the cost for all
// objects of a run: RunCost, plus objectCost for each object. Half a million to two million units
// take a second. The budget counts no time, so that every run stops at the same object.
const (
	RunCost    = 10_000_000
	objectCost = 5_000
)

// Budget limits the cost of expressions for all objects of a run.
type Budget struct {
	Limit int64 // in addition to the cost per object; 0 means RunCost

	lock    sync.Mutex
	pending []*Meter // in object order
	spent   int64
	objects int64            // with expressions
	by      map[string]int64 // cost by name of a policy or definition
	over    bool
}

// Meter counts the cost of expressions for one object. Its zero value has no budget.
type Meter struct {
	budget *Budget
	cost   int64
	by     map[string]int64
	used   bool
}

// Meter returns the meter of the next object. Calls must be in object order; evaluations may run
// concurrently.
func (b *Budget) Meter() *Meter {
	b.lock.Lock()
	defer b.lock.Unlock()
	m := &Meter{budget: b}
	b.pending = append(b.pending, m)
	return m
}

// Exhausted returns the meter of an object after the end of the budget.
func Exhausted() *Meter { return &Meter{budget: &Budget{over: true}} }

// left returns the remaining budget after a number of objects and their cost.
func (b *Budget) left(objects, cost int64) int64 {
	limit := b.Limit
	if limit == 0 {
		limit = RunCost
	}
	return limit + objects*objectCost - cost
}

// Start reports whether to evaluate expressions for the object: false if earlier objects are known
// to have used up the budget.
func (m *Meter) Start() bool {
	m.used = true
	return !m.Over()
}

// Over reports whether earlier objects are known to have used up the budget. The result is timing
// dependent: before Start it must have no visible effect.
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

// Add adds the cost of the expressions of a policy or definition.
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

// Cost returns the total added cost.
func (m *Meter) Cost() int64 { return m.cost }

// Take charges the object to the budget. It returns false if earlier objects used up the budget and
// the object has expressions: their results must be ignored. Take must be called for each meter, in
// object order.
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

// String returns the cost so far, the number of objects, and the names with the highest cost.
func (b *Budget) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return fmt.Sprintf("%d units of CEL for the first %d objects, the most of it by %s", b.spent,
		b.objects, dearest(b.by))
}

// Dearest lists the names with the highest cost for the object.
func (m *Meter) Dearest() string { return dearest(m.by) }

// dearest lists the names with at least a tenth of the total cost, by cost.
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

// WithMeter returns a context whose evaluations add their cost to m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// MeterOf returns the meter of a context.
func MeterOf(ctx context.Context) *Meter {
	if m, is := ctx.Value(meterKey{}).(*Meter); is {
		return m
	}
	return &Meter{}
}
