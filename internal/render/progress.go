package render

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Progress shows the phase of the work on a terminal, how long it has taken and, where that is
// known, how much of it is done and how long the rest may take.
type Progress struct {
	w     io.Writer
	every time.Duration
	part  atomic.Pointer[func() float64] // of the phase, nil where it is not known
	end   func()
}

// NewProgress returns the Progress of a terminal; on any other writer, and where TERM is dumb, it
// shows nothing.
func NewProgress(w io.Writer) *Progress {
	if !IsTerminal(w) || os.Getenv("TERM") == "dumb" {
		w = nil
	}
	return &Progress{w: w, every: time.Second}
}

// Phase ends the phase before and begins one. It returns p.
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

// Of has the line tell how much of the phase is done, from 0 to 1; part may be nil. It is called on
// another goroutine until the phase ends. It returns p.
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

// progressLine is what a terminal shows of a phase.
type progressLine struct {
	name  string
	begun time.Time
	part  float64   // that is done; 0 where nothing is known
	moved time.Time // when part last grew
	first time.Time // when part was first known, to be counted
	from  float64   // part at first
}

// advance takes what is done now. It never goes back.
func (l *progressLine) advance(now time.Time, part float64) {
	if l.first.IsZero() {
		l.first, l.from, l.moved = now, part, now
	}
	if part > l.part {
		l.part, l.moved = part, now
	}
}

// text is the line, no wider than that many columns. What is not yet over is never at 100%.
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

// left is how long the rest may take, 0 where it cannot be told: too little is done, or nothing
// more since a while.
func (l *progressLine) left(now time.Time) time.Duration {
	const early, still = 2 * time.Second, 3 * time.Second
	took, did := now.Sub(l.first), l.part-l.from
	if l.first.IsZero() || took < early || did < 0.03 || l.part >= 1 || now.Sub(l.moved) > still {
		return 0
	}
	left := time.Duration(float64(took) * (1 - l.part) / did)
	return max(left.Round(time.Second), time.Second)
}
