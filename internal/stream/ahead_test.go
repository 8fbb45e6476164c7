package stream

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStoppedReader checks that a reader that stopped gets no further value.
func TestStoppedReader(t *testing.T) {
	values := 0
	for range Of(func(yield func(int) error) error {
		require.NoError(t, yield(1))
		require.Error(t, yield(2))
		require.Error(t, yield(3))
		return errors.New("after the end")
	}) {
		if values++; values == 2 {
			break
		}
	}
	require.Equal(t, 2, values)
}

// TestAhead checks that items come in order with their work done, up to an error of the sequence or
// the reader.
func TestAhead(t *testing.T) {
	for _, bytes := range []int{0, 1, aheadBytes / 5, 2 * aheadBytes} {
		testAhead(t, bytes)
	}
}

func testAhead(t *testing.T, bytes int) {
	guard := func(fn func() error) error { return fn() }
	ended := errors.New("ended")
	type item struct{ n, square int }
	for _, n := range []int{0, 1, aheadSize - 1, aheadSize, aheadSize + 1, 10*aheadSize + 7} {
		for _, stop := range []int{-1, 0, 5, aheadSize, 9 * aheadSize} {
			numbers := Of(func(yield func(int) error) error {
				for i := range n {
					if err := yield(i); err != nil {
						return err
					}
				}
				return ended
			})
			seen := 0
			all := Ahead(guard, numbers, func(n int) (item, int) { return item{n: n}, bytes * (n % 3) },
				func(i *item) { i.square = i.n * i.n })
			err := Each(all, func(i *item) error {
				require.Equal(t, item{seen, seen * seen}, *i)
				if seen == stop {
					return errors.ErrUnsupported
				}
				seen++
				return nil
			})
			if stop >= 0 && stop < n {
				require.ErrorIs(t, err, errors.ErrUnsupported)
				require.Equal(t, stop, seen)
			} else {
				require.ErrorIs(t, err, ended)
				require.Equal(t, n, seen)
			}
		}
	}
}
