package render

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Progress shows the phase of the work on a terminal, its duration and, if known, the done part and
// the remaining time.
type Progress struct {
	w     io.Writer
	every time.Duration
	part  atomic.Pointer[func() float64] // of the phase, nil if unknown
	end   func()
}

// NewProgress returns the Progress of a terminal; on any other writer, and if TERM is dumb, it
// shows nothing.
func NewProgress(w io.Writer) *Progress {
	if !IsTerminal(w) || os.Getenv("TERM") == "dumb" {
		w = nil
	}
	return &Progress{w: w, every: time.Second}
}

// Phase ends the previous phase and begins one. It returns p.
func (p *Progress) Phase(name string) *Progress {
	p.End()
	if p.w == nil {
		return p
	}
	p.part.Store(nil)
	done, gone := make(chan struct{}), make(chan struct{})
	p.end = func() { close(done); <-gone }
	go func() {
		defer close(gone)
		line, shown := progressLine{name: Printable(name), begun: time.Now()}, false
		tick := time.NewTicker(p.every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				if shown {
					fmt.Fprint(p.w, "\r\x1b[K")
				}
				return
			case now := <-tick.C:
				shown = true
				if part := p.part.Load(); part != nil {
					line.advance(now, (*part)())
				}
				fmt.Fprint(p.w, "\r\x1b[K"+line.text(now, columnsOf(p.w)-1))
			}
		}
	}()
	return p
}

// Of makes the line show the done part of the phase, from 0 to 1; part may be nil. It is called on
// another goroutine until the phase ends. Of returns p.
func (p *Progress) Of(part func() float64) *Progress {
	if part != nil {
		p.part.Store(&part)
	}
	return p
}

// End ends the phase, if any, and clears its line.
func (p *Progress) End() {
	if p.end != nil {
		p.end()
		p.end = nil
	}
}

// progressLine is the state of a phase on a terminal.
type progressLine struct {
	name  string
	begun time.Time
	part  float64   // done part; 0 if unknown
	moved time.Time // when part last grew
	first time.Time // when part was first known
	from  float64   // part at first
}

// advance updates the done part. It never decreases.
func (l *progressLine) advance(now time.Time, part float64) {
	if l.first.IsZero() {
		l.first, l.from, l.moved = now, part, now
	}
	if part > l.part {
		l.part, l.moved = part, now
	}
}

// text returns the line, no wider than columns. An unfinished phase never shows 100%.
func (l *progressLine) text(now time.Time, columns int) string {
	took := ": " + now.Sub(l.begun).Round(time.Second).String()
	if percent := min(99, int(l.part*100)); percent > 0 {
		took += fmt.Sprintf(", %d%%", percent)
	}
	if left := l.left(now); left > 0 {
		took += ", " + left.String() + " left"
	}
	return fit(fit(l.name, columns-len(took))+took, columns)
}

// left estimates the remaining time, 0 if unknown: too little is done, or progress has stopped.
func (l *progressLine) left(now time.Time) time.Duration {
	const early, still = 2 * time.Second, 3 * time.Second
	took, did := now.Sub(l.first), l.part-l.from
	if l.first.IsZero() || took < early || did < 0.03 || l.part >= 1 || now.Sub(l.moved) > still {
		return 0
	}
	left := time.Duration(float64(took) * (1 - l.part) / did)
	return max(left.Round(time.Second), time.Second)
}
